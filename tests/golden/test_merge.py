"""Merges: commutative, neutral in empty sets, and equal to one run over the union."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import pipeline
from golden.merge import Side, merge, merge_logits
from golden.pipeline import Items
from golden.state import State


@st.composite
def states(draw):
    if draw(st.integers(0, 5)) == 0:
        return State.empty(3)
    word = st.integers(-(2**62) + 1, 2**62 - 1)
    return State(
        maximum=draw(st.integers(-32768, 32771)), weight_sum=draw(st.integers(1, 2**62 - 1)),
        exponent=draw(st.integers(0, 254)),
        values=np.array(draw(st.lists(word, min_size=3, max_size=3))),
    )


def slow_merge(a, b):
    if a.weight_sum == 0:
        return b
    if b.weight_sum == 0:
        return a
    m, ev = max(a.maximum, b.maximum), max(a.exponent, b.exponent)
    values = [
        (x >> min(m - a.maximum + ev - a.exponent, 63))
        + (y >> min(m - b.maximum + ev - b.exponent, 63))
        for x, y in zip(a.values.tolist(), b.values.tolist(), strict=True)
    ]
    weight_sum = (a.weight_sum >> min(m - a.maximum, 63)) + (b.weight_sum >> min(m - b.maximum, 63))
    return State(maximum=m, weight_sum=weight_sum, exponent=ev, values=np.array(values))


@given(states(), states())
def test_merge_commutes_and_equals_the_formula(a, b):
    assert merge(a, b) == merge(b, a) == slow_merge(a, b)


@given(states())
def test_the_empty_state_is_neutral(a):
    empty = State.empty(3)
    assert merge(a, empty) == a == merge(empty, a)


def test_words_wrap_at_64_bits():
    high = State(maximum=0, weight_sum=2**63, exponent=0, values=np.array([2**62]))
    got = merge(high, high)
    assert got.weight_sum == 0 and got.values.tolist() == [-(2**63)]


def tokens(rng, count, dim=16):
    """Items with logits and value rows of ``count`` tokens, in order."""
    classes = rng.integers(0, 3, count)
    items = pipeline.items(classes, summaries=True)
    n = len(items)
    logits = (rng.standard_normal(n) * 3 * 65536).astype(np.int32)
    rows = rng.integers(-128, 128, (n, dim)).astype(np.int8)
    return Side(items=items, logits=logits, rows=rows, exponents=rng.integers(100, 130, (n, 2)))


def part(side, mask):
    items = Items(positions=side.items.positions[mask], kinds=side.items.kinds[mask],
                  weights=side.items.weights[mask])
    return Side(items=items, logits=side.logits[mask], rows=side.rows[mask],
                exponents=side.exponents[mask])


def state_of(side):
    return pipeline.accumulate(side.logits, side.items.weights, side.rows, side.exponents)


@given(st.integers(0, 2**32 - 1), st.integers(1, 80))
def test_merging_logits_equals_one_run(seed, count):
    rng = np.random.default_rng(seed)
    whole = tokens(rng, count)
    near = rng.integers(0, 2, len(whole.items)).astype(bool)
    merged = merge_logits(part(whole, near), part(whole, ~near))
    assert merged == state_of(whole) == merge_logits(part(whole, ~near), part(whole, near))


@given(st.integers(0, 2**32 - 1), st.integers(1, 80))
def test_merging_states_is_close_to_one_run(seed, count):
    rng = np.random.default_rng(seed)
    whole = tokens(rng, count)
    near = rng.integers(0, 2, len(whole.items)).astype(bool)
    merged = merge(state_of(part(whole, near)), state_of(part(whole, ~near)))
    want = state_of(whole)
    assert (merged.maximum, merged.exponent) == (want.maximum, want.exponent)
    assert abs(merged.weight_sum - want.weight_sum) <= len(whole.items) + 2
    assert np.abs(merged.values - want.values).max() <= 200 * (len(whole.items) + 2)


def test_refusals():
    side = tokens(np.random.default_rng(0), 20)
    with pytest.raises(ValueError, match="sides must be disjoint"):
        merge_logits(side, side)
    with pytest.raises(ValueError, match="equal head_dim, not 3 and 4"):
        merge(State.empty(3), State.empty(4))
    with pytest.raises(TypeError, match="b must be a State, not None"):
        merge(State.empty(3), None)
    with pytest.raises(ValueError, match="Side.logits must have shape"):
        Side(items=side.items, logits=side.logits[1:], rows=side.rows, exponents=side.exponents)
