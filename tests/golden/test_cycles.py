"""The cycle model: limits computed by hand, and what follows from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import hashing, mxint
from golden.cycles import Depths, Work, code_beats, predict, row_beats
from golden.selection import Select, Selection
from golden.unit import AttentionModel
from hw.config import AttentionConfig


def large(**changes):
    sizes = {"head_dim": 128, "code_bits": 64, "lanes": 32, "max_tokens": 8192, "memory_bytes": 64}
    return AttentionConfig(**(sizes | changes))


def test_limits_of_a_short_context():
    """1,024 keys of 64 elements, 16 codes and 64 bytes a cycle, 32 in full."""
    config = AttentionConfig(head_dim=64, code_bits=64, lanes=16, max_tokens=1024, memory_bytes=64,
                             encoder_lanes=16)
    got = predict(config, Work(visible=1024, full=32), memory_latency=20)
    assert (got.code, got.payload, got.latency_limit, got.interval_limit) == (64, 64, 128, 64)


def test_limits_of_a_long_context():
    """8,192 keys of 128 elements, 32 codes and 64 bytes a cycle, 128 in full and 512 coarse."""
    hashed = predict(large(), Work(visible=8192, full=128, coarse=512), 20)
    dense = predict(large(), Work(visible=8192, full=8192, select=Select.DENSE), 20)
    assert (hashed.code, hashed.payload, hashed.latency_limit) == (256, 1536, 1792)
    assert (dense.code, dense.payload, dense.latency_limit) == (0, 32768, 32768)
    assert dense.latency / hashed.latency > 12


def test_streamed_codes_share_the_port():
    config = large(code_source="streamed", exponent_block=128)
    work = Work(visible=8192, full=128)
    got = predict(config, work, 20)
    assert config.code_line_beats == 5  # 32 codes of 8 bytes, and 2 exponents each
    assert got.code == code_beats(config, work) == 256 * 5
    assert got.interval_limit == 256 * 5 + 512


def test_a_partial_line_is_a_whole_cycle():
    code = [predict(large(), Work(visible=n, full=1), 0).code for n in (1, 31, 32, 33)]
    assert code == [1, 1, 1, 2]


def test_codes_given_save_the_encoding():
    given_, encoded = (predict(large(group=4), Work(visible=64, full=8, has_code=has), 0)
                       for has in (True, False))
    assert given_.encode == 0 and encoded.encode == 4 * 64
    assert given_.latency < encoded.latency


def test_a_deeper_stage_costs_its_cycles():
    work = Work(visible=64, full=8)
    base, deep = (predict(large(), work, 10, Depths(head=cycles)) for cycles in (10, 13))
    assert deep.latency - base.latency == 3 and deep.interval == base.interval


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_beats_are_those_of_the_unit(seed, logits_only, streamed):
    rng = np.random.default_rng(seed)
    source = {"code_source": "streamed"} if streamed else {}
    config = AttentionConfig(head_dim=32, code_bits=32, lanes=16, max_tokens=256,
                             memory_bytes=int(2 ** rng.integers(2, 6)), **source)
    count = int(rng.integers(1, 80))
    model = AttentionModel(config)
    model.load_weights(0, True, hashing.random_weights(32, 32, 0))
    model.open(0, 256)
    rows = mxint.quantise(rng.standard_normal((count, 32)), 32)
    model.append(0, *rows, *rows)
    full = int(rng.integers(0, count + 1))
    selection = Selection(select=Select.BUDGET, full=full, coarse=(count - full) // 2,
                          summaries=True)
    got = model.query(0, np.ones((1, 32), int), [120], selection, logits_only=logits_only)
    work = Work(visible=count, full=got.full, coarse=got.coarse, summaries=got.summaries,
                logits_only=logits_only)
    assert (row_beats(config, work), code_beats(config, work)) == (got.row_beats, got.code_beats)


@pytest.mark.parametrize("call, error, text", [
    (lambda: Work(visible=0, full=0), ValueError, "Work.visible must be in 1.."),
    (lambda: Work(visible=4, full=5), ValueError, "Work.full must be in 0..4, not 5"),
    (lambda: Work(visible=4, full=4, select=1), TypeError, "Work.select must be a Select, not 1"),
    (lambda: Work(visible=4, full=4, has_code=1), TypeError, "Work.has_code must be a bool, not 1"),
    (lambda: Depths(head=-1), ValueError, "Depths.head must be in 0.."),
    (lambda: predict(3, Work(visible=1, full=1), 0), TypeError,
     "config must be an AttentionConfig, not 3"),
    (lambda: predict(large(), 3, 0), TypeError, "work must be a Work, not 3"),
    (lambda: predict(large(), Work(visible=1, full=1), 0, 3), TypeError,
     "depths must be a Depths, not 3"),
])
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
