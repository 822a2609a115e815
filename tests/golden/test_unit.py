"""The unit's model: every command's outcome, errors included."""

import numpy as np
import pytest

from golden import hashing, mxint, pipeline
from golden.errors import Error
from golden.pipeline import Kind
from golden.reference import weighted_attention
from golden.selection import Select, Selection
from golden.state import State
from golden.summary import page_summaries
from golden.unit import AttentionModel
from hw.attention import layouts
from hw.config import AttentionConfig

DENSE = Selection()


def configured(**changes):
    sizes = {"head_dim": 32, "code_bits": 64, "lanes": 16, "max_tokens": 512, "memory_bytes": 16}
    return AttentionConfig(**(sizes | changes))


def rows(rng, count, config):
    return mxint.quantise(rng.standard_normal((count, config.head_dim)), config.exponent_block)


def filled(config, count, seed=20):
    """A model with ``count`` tokens in context 1, and their K and V."""
    rng = np.random.default_rng(seed)
    model = AttentionModel(config)
    weights = hashing.random_weights(config.code_bits, config.head_dim, seed)
    model.load_weights(0, False, weights)
    model.load_weights(0, True, weights)
    model.open(1, capacity=config.max_tokens)
    keys, values = rows(rng, count, config), rows(rng, count, config)
    if count:
        assert model.append(1, *keys, *values).error == Error.NONE
    query = mxint.quantise_query(rng.standard_normal((config.group, config.head_dim)) / 4, 16)
    return model, keys, values, query


def test_numbers_are_those_of_the_hardware():
    for golden, hardware in ((Error, layouts.Error), (Select, layouts.Select)):
        assert {e.name: e.value for e in golden} == {e.name: e.value for e in hardware}
    assert all(kind.value == layouts.Kind[kind.name].value for kind in Kind)


@pytest.mark.parametrize("group", [1, 4, 8])
@pytest.mark.parametrize("summaries", [False, True])
def test_a_query_is_what_its_parts_say(group, summaries):
    config = configured(group=group)
    model, keys, values, (mantissas, exponents) = filled(config, 100)
    selection = Selection(select=Select.BUDGET, full=20, coarse=30, sink=2, recent=4,
                          summaries=summaries)
    got = model.query(1, mantissas, exponents, selection, visible=90)
    chosen = pipeline.items(got.choice.classes, summaries)
    pages = page_summaries(*keys), page_summaries(*values)
    for head in range(group):
        want = pipeline.attend(mantissas[head], exponents[head], keys, values, chosen, 16, *pages)
        assert got.outputs[head].tolist() == want.output.view(np.uint32).tolist()
        assert got.states[head] == want.state
        assert got.logits[head].tolist() == want.logits.values.tolist()
    assert (got.error, got.saturated) == (Error.NONE, False)
    assert (got.full, got.coarse) == (20, 30)
    assert got.summaries == (len(chosen) - 50 if summaries else 0)
    assert got.row_beats == 2 * (2 * (got.full + got.summaries) + got.coarse)
    assert got.code_beats == 0


def test_close_to_the_reference():
    config = configured()
    model, keys, values, (mantissas, exponents) = filled(config, 77)
    got = model.query(1, mantissas, exponents, DENSE).outputs.view(np.float32)
    k, v = mxint.dequantise(*keys), mxint.dequantise(*values)
    q = mxint.dequantise_query(mantissas, exponents, 16)
    want, _ = weighted_attention(q[0], k, v, np.ones(77))
    assert np.abs(got - want).max() <= 5e-5 * np.abs(v).max()


@pytest.mark.parametrize("pieces", [[1] * 40, [15, 1, 16, 8], [3, 30, 7], [40]])
def test_appends_add_up(pieces):
    """However the tokens arrive, the same context results."""
    config = configured()
    want, keys, values, query = filled(config, 40)
    model, *_ = filled(config, 0)
    start = 0
    for piece in pieces:
        part = slice(start, start + piece)
        result = model.append(1, *(array[part] for array in (*keys, *values)))
        start += piece
        assert result.length == start == model.length(1)
    selection = Selection(select=Select.BUDGET, full=4, coarse=4, summaries=True)
    got, expected = model.query(1, *query, selection), want.query(1, *query, selection)
    assert got.states == expected.states and got.logit_list(0) == expected.logit_list(0)


def test_codes_given_are_codes_used():
    config = configured()
    model, *_, query = filled(config, 0)
    codes = np.ones((20, 64), int)
    codes[7, 0] = 0
    rng = np.random.default_rng(21)
    model.append(1, *rows(rng, 20, config), *rows(rng, 20, config), codes=codes)
    selection = Selection(select=Select.BUDGET, full=1)
    got = model.query(1, *query, selection, codes=np.eye(1, 64, dtype=int) ^ 1)
    assert got.items.positions.tolist() == [7]


def test_logits_only_reads_keys_only():
    model, *_, query = filled(configured(), 50)
    both, got = model.query(1, *query, DENSE), model.query(1, *query, DENSE, logits_only=True)
    assert got.logit_list(0) == both.logit_list(0) and len(got.logit_list(0)) == 50
    assert got.outputs is None and got.states == []
    assert got.beats * 2 == both.beats == 50 * 2 * 2


def test_no_items_give_the_empty_state_and_zeros():
    model, *_, query = filled(configured(), 50)
    got = model.query(1, *query, Selection(select=Select.DISTANCE))
    assert got.error == Error.NONE and got.beats == 0
    assert got.states == [State.empty(32)] and not got.outputs.any()


def test_streamed_codes_count_whole_lines():
    config = configured(code_source="streamed", lanes=16)
    model, *_, query = filled(config, 33)
    got = model.query(1, *query, DENSE)
    assert got.code_beats == 3 * config.code_line_beats
    assert got.beats == got.code_beats + got.row_beats


def test_zero_blocks_are_canonical():
    """A zero block with a large exponent changes nothing."""
    config = configured(head_dim=64, memory_bytes=32)
    results = []
    for exponent in (0, 254):
        model, *_, query = filled(config, 0)
        rng = np.random.default_rng(22)
        keys, key_exponents = rows(rng, 20, config)
        values, value_exponents = rows(rng, 20, config)
        for mantissas, exponents in ((keys, key_exponents), (values, value_exponents)):
            mantissas[::3, 32:], exponents[::3, 1] = 0, exponent
        model.append(1, keys, key_exponents, values, value_exponents)
        selection = Selection(select=Select.BUDGET, full=5, summaries=True)
        results.append(model.query(1, *query, selection))
    assert results[0].states == results[1].states
    assert results[0].logit_list(0) == results[1].logit_list(0)


def test_saturation_is_reported():
    config = configured()
    model, *_ = filled(config, 0)
    rng = np.random.default_rng(23)
    keys = np.full((1, 32), 127), np.full((1, 1), 254)
    model.append(1, *keys, *rows(rng, 1, config))
    assert model.query(1, np.full((1, 32), 32767), [254], DENSE).saturated


def test_contexts_are_apart():
    config = configured()
    model, *_, query = filled(config, 40)
    before = model.query(1, *query, DENSE)
    model.open(2, capacity=16)
    rng = np.random.default_rng(24)
    model.append(2, *rows(rng, 16, config), *rows(rng, 16, config))
    assert model.query(1, *query, DENSE).states == before.states
    assert model.query(2, *query, DENSE).full == 16


@pytest.mark.parametrize("context, count, error", [
    (0, 1, Error.CONTEXT), (9, 1, Error.CONTEXT), (1, 473, Error.CAPACITY), (1, 0, Error.DATA),
    (1, 472, Error.NONE),
])
def test_append_errors(context, count, error):
    config = configured()
    model, *_, query = filled(config, 40)
    before = model.query(1, *query, DENSE)
    part = np.zeros((count, 32), int), np.zeros((count, 1), int)
    assert model.append(context, *part, *part).error == error
    assert model.length(1) == (512 if error == Error.NONE else 40)
    assert model.query(1, *query, DENSE, visible=40).states == before.states


@pytest.mark.parametrize("side", [1, 3])
def test_nan_exponents_are_refused(side):
    model, keys, values, _ = filled(configured(), 40)
    arrays = [array.astype(int) for array in (*keys, *values)]
    arrays[side][5, 0] = 255
    result = model.append(1, *arrays)
    assert (result.error, result.length) == (Error.EXPONENT, 40)


@pytest.mark.parametrize("context, changes, visible, error", [
    (0, {}, 0, Error.CONTEXT), (77, {}, 0, Error.CONTEXT), (2, {}, 0, Error.EMPTY),
    (1, {}, 41, Error.VISIBLE), (1, {"full": 30, "coarse": 11}, 0, Error.BUDGET),
    (1, {"full": 30, "coarse": 10}, 39, Error.BUDGET),
    (1, {"full": 30, "coarse": 10}, 40, Error.NONE),
])
def test_query_errors(context, changes, visible, error):
    model, *_, query = filled(configured(), 40)
    model.open(2, capacity=16)
    selection = Selection(select=Select.BUDGET, **changes)
    got = model.query(context, *query, selection, visible=visible)
    assert got.error == error
    if error:
        assert got.outputs is None and got.beats == 0


def test_a_closed_context_is_unknown():
    model, *_, query = filled(configured(), 40)
    model.close(1)
    assert model.query(1, *query, DENSE).error == Error.CONTEXT and model.length(1) == 0


@pytest.mark.parametrize("kept", [0, 16, 32, 40])
def test_a_context_entered_again_keeps_its_first_tokens(kept):
    config = configured()
    model, keys, values, query = filled(config, 40)
    before = model.query(1, *query, Selection(select=Select.DISTANCE, coarse=30, summaries=True))
    model.open(1, capacity=64, length=kept)
    assert model.length(1) == kept
    if kept < 40:
        assert model.append(1, *(part[kept:] for part in (*keys, *values))).length == 40
    after = model.query(1, *query, Selection(select=Select.DISTANCE, coarse=30, summaries=True))
    assert after.states == before.states


@pytest.mark.parametrize("call, error, text", [
    (lambda model: AttentionModel(3), TypeError,
     "AttentionModel config must be an AttentionConfig, not 3"),
    (lambda model: model.open(4, 16), ValueError, "context must be in 0..3, not 4"),
    (lambda model: model.open(0, 513), ValueError, "capacity must be in 1..512, not 513"),
    (lambda model: model.open(1, 16, length=2), ValueError, "length must be in 0..1, not 2"),
    (lambda model: model.open(0, 16, length=1), ValueError, "length must be in 0..0, not 1"),
    (lambda model: model.load_weights(0, 1, None), TypeError, "is_key must be a bool, not 1"),
    (lambda model: model.query(1, np.zeros((1, 32)), [0], DENSE), TypeError,
     "mantissas must be an integer array, not of dtype float64"),
    (lambda model: model.query(1, np.zeros((1, 32), int), [255], DENSE), ValueError,
     "exponents must be in 0..254"),
    (lambda model: model.query(1, np.zeros((1, 32), int), [0], None), TypeError,
     "selection must be a Selection, not None"),
    (lambda model: model.query(1, np.zeros((2, 32), int), [0], DENSE), ValueError,
     "mantissas must have shape (1, 32), not (2, 32)"),
])
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call(filled(configured(), 1)[0])
    assert text in str(caught.value)
