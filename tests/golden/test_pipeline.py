"""The vectorised pipeline against a scalar transcription of the numerics page."""

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import exp2, pipeline
from golden.pipeline import Kind
from golden.state import State

seeds = st.integers(0, 2**32 - 1)


def rnd(x, s):
    return (x + (1 << (s - 1))) >> s if s else x


def sat(x, n):
    return min(max(x, -(1 << (n - 1))), (1 << (n - 1)) - 1)


def slow_logit(query, query_exponent, row, exponents, query_bits):
    block = len(row) // len(exponents)
    total, clipped = 0, False
    for b, scale in enumerate(exponents):
        dot = sum(q * k for q, k in zip(query[b * block:][:block], row[b * block:], strict=False))
        shift = query_exponent + scale - 254 - (query_bits - 2) - 6 + 20
        y = dot << shift if shift >= 0 else rnd(dot, -shift)
        clipped |= y != sat(y, 40)
        total += sat(y, 40)
    x = rnd(total, 4)
    return sat(x, 32), clipped or x != sat(x, 32)


def slow_state(logits, weights, rows, exponents):
    getcontext().prec = 40
    table = [int((Decimal(2) ** (Decimal(i) / 256)) * 2**24 + Decimal("0.5")) for i in range(257)]
    dim, block = len(rows[0]), len(rows[0]) // len(exponents[0])
    empty, m, l, ev, o = True, 0, 0, 0, [0] * dim
    for x, n, row, scales in zip(logits, weights, rows, exponents, strict=True):
        index, rest = (x & 0xFFFF) >> 8, x & 255
        a = table[index] + (((table[index + 1] - table[index]) * rest + 128) >> 8)
        w = min(a, 2**25 - 1) * n
        k = w.bit_length() - 25
        e, big_p = (x >> 16) + k, (w >> k) << 8
        m2, ev2 = (e, max(scales)) if empty else (max(m, e), max(ev, max(scales)))
        if not empty:
            l >>= min(m2 - m, 63)
            o = [value >> min(m2 - m + ev2 - ev, 63) for value in o]
        m, ev, empty = m2, ev2, False
        l += rnd(big_p, m - e)
        for j in range(dim):
            o[j] += rnd(big_p, m - e + ev - scales[j // block]) * row[j]
    return State(maximum=m, weight_sum=l, exponent=ev, values=np.array(o))


def slow_normalise(state):
    """Section 6 in rationals, rounded to float32 by hand; bit patterns."""
    bits = []
    for o in state.values.tolist():
        if state.weight_sum == 0 or o == 0:
            bits.append(0)
            continue
        kl, ko = state.weight_sum.bit_length() - 1, abs(o).bit_length() - 1
        ln = state.weight_sum << 31 - kl if kl <= 31 else state.weight_sum >> kl - 31
        an = abs(o) << 25 - ko if ko <= 25 else abs(o) >> ko - 25
        value = an * (2**57 // ln) * Fraction(2) ** (ko - kl - 51 + state.exponent - 133)
        exponent = -126
        while value >= Fraction(2) ** (exponent + 1):
            exponent += 1
        mantissa = round(value / Fraction(2) ** (exponent - 23))  # half to even
        if mantissa == 1 << 24:
            mantissa, exponent = 1 << 23, exponent + 1
        if exponent > 127:
            pattern = 0x7F7FFFFF
        elif mantissa < 1 << 23:
            pattern = mantissa
        else:
            pattern = (exponent + 127 << 23) + mantissa - (1 << 23)
        bits.append(pattern | (1 << 31 if o < 0 else 0))
    return bits


def test_exp2_table_and_mantissa():
    getcontext().prec = 40
    want = [int((Decimal(2) ** (Decimal(i) / 256)) * 2**24 + Decimal("0.5")) for i in range(257)]
    assert exp2.exp2_table().tolist() == want
    every = exp2.exp2_mantissa(np.arange(65536))
    exact = np.exp2(np.arange(65536) / 65536) * 2**24
    assert np.abs(every / exact - 1).max() < 1e-6
    assert (np.diff(every) >= 0).all() and every.min() == 1 << 24 and every.max() < 1 << 25


@given(seeds, st.sampled_from([8, 16]), st.sampled_from([1, 2, 4]))
def test_logits_equal_the_loop(seed, query_bits, blocks):
    rng = np.random.default_rng(seed)
    limit = 1 << (query_bits - 1)
    query = rng.integers(-limit, limit, 16) // rng.choice([1, 50])
    rows = rng.integers(-128, 128, (6, 16))
    around = int(rng.choice([0, 90, 110, 117, 125, 135, 150, 240]))
    exponents = np.clip(around + rng.integers(-15, 15, (6, blocks)), 0, 254)
    query_exponent = int(rng.integers(100, 140))
    got = pipeline.logits(query, query_exponent, rows, exponents, query_bits)
    for n in range(6):
        want = slow_logit(query.tolist(), query_exponent, rows[n].tolist(),
                          exponents[n].tolist(), query_bits)
        assert (got.values[n], got.saturated[n]) == want


@pytest.mark.parametrize("exponents, sign", [([254, 254], 1), ([254, 254], -1), ([254, 0], 1)])
def test_logits_saturate_and_say_so(exponents, sign):
    rows = np.full((1, 8), 127 * sign)
    got = pipeline.logits(np.full(8, 32767), 254, rows, [exponents], 16)
    assert got.values[0] == (2**31 - 1 if sign > 0 else -(2**31)) and got.saturated[0]


def test_a_clipped_block_is_reported_even_where_the_sum_fits():
    rows = np.array([[127] * 4 + [-127] * 4])
    got = pipeline.logits(np.full(8, 32767), 254, rows, [[254, 254]], 16)
    assert got.saturated[0] and abs(int(got.values[0])) <= 1


@given(seeds, st.integers(1, 40), st.sampled_from([1, 3, 25]), st.sampled_from([1, 2]))
def test_state_equals_the_loop(seed, count, octaves, blocks):
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal(count) * octaves * 65536).astype(np.int64)
    if rng.integers(2):
        logits.sort()  # a maximum that rises again and again
    weights = rng.integers(1, 17, count)
    rows = rng.integers(-128, 128, (count, 8))
    exponents = np.clip(rng.integers(0, 255) + rng.integers(-40, 40, (count, blocks))
                        // rng.choice([1, 40]), 0, 254)
    got = pipeline.accumulate(logits, weights, rows, exponents)
    want = slow_state(logits.tolist(), weights.tolist(), rows.tolist(), exponents.tolist())
    assert got == want
    assert pipeline.normalise(got).view(np.uint32).tolist() == slow_normalise(want)


@pytest.mark.parametrize("low", [-32768 << 16, -20 << 16])
def test_state_over_the_whole_logit_range(low):
    logits = [low, 32767 << 16 | 65535, low, low + 1]
    rows, exponents = [[1], [-128], [127], [3]], [[0], [254], [254], [3]]
    got = pipeline.accumulate(np.array(logits), np.array([16, 16, 1, 2]), np.array(rows), exponents)
    assert got == slow_state(logits, [16, 16, 1, 2], rows, exponents)


@given(st.integers(1, 2**64 - 1), st.integers(0, 254), st.integers(-(2**63), 2**63 - 1),
       st.integers(0, 62), st.integers(0, 63))
def test_normalise_equals_rationals(weight_sum, exponent, value, shrink, shrink_sum):
    state = State(maximum=0, weight_sum=max(weight_sum >> shrink_sum, 1), exponent=exponent,
                  values=np.array([value, value >> shrink, -(value >> shrink) - 1, 0, 1, -1]))
    assert pipeline.normalise(state).view(np.uint32).tolist() == slow_normalise(state)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 20])
def test_gradual_underflow(exponent):
    values = np.array([(64 << 32) + delta for delta in range(-3, 4)] + [1 << 10, -(1 << 10), 7])
    state = State(maximum=5, weight_sum=(1 << 33) - 1, exponent=exponent, values=values >> 3)
    got = pipeline.normalise(state)
    assert got.view(np.uint32).tolist() == slow_normalise(state)
    assert exponent > 3 or (np.abs(got) < np.finfo(np.float32).tiny).all()


def test_above_the_range_is_the_largest_finite():
    state = State(maximum=0, weight_sum=1 << 32, exponent=254,
                  values=np.array([1 << 62, -(1 << 62)]))
    largest = np.finfo(np.float32).max
    assert pipeline.normalise(state).tolist() == [largest, -largest]


def test_empty():
    none = np.zeros((0, 8), np.int8), np.zeros((0, 2), np.uint8)
    state = pipeline.accumulate(np.zeros(0, int), np.zeros(0, int), *none)
    assert state == State.empty(8) and state.is_empty
    assert pipeline.normalise(state).view(np.uint32).tolist() == [0] * 8


def slow_items(classes, summaries):
    order = []
    for position in range(len(classes) - 1, -1, -1):
        if classes[position]:
            order.append((position, Kind.FULL if classes[position] == 2 else Kind.COARSE, 1))
        first_of_complete = position % 16 == 0 and position + 16 <= len(classes)
        skipped = classes[position:position + 16].count(0)
        if summaries and first_of_complete and skipped:
            order.append((position, Kind.SUMMARY, skipped))
    return order


@given(st.lists(st.integers(0, 2), min_size=0, max_size=70), st.booleans())
def test_items_are_in_order(classes, summaries):
    got = pipeline.items(np.array(classes, int), summaries)
    rows = zip(got.positions.tolist(), got.kinds.tolist(), got.weights.tolist(), strict=True)
    assert list(rows) == slow_items(classes, summaries)


def test_attend_reads_each_kind_as_it_should():
    """One head over a full token, a coarse token and a summary, against the loops."""
    rng = np.random.default_rng(10)
    keys = rng.integers(-128, 128, (16, 8)), rng.integers(120, 130, (16, 2))
    values = rng.integers(-128, 128, (16, 8)), rng.integers(120, 130, (16, 2))
    summary = rng.integers(-128, 128, (1, 8)), rng.integers(120, 130, (1, 2))
    classes = np.zeros(16, int)
    classes[[3, 9]] = 2, 1
    query = rng.integers(-99, 99, 8)
    got = pipeline.attend(query, 127, keys, values, pipeline.items(classes, True), 16,
                          summary, summary)

    def reads(rows):
        middle = [16 * (m // 16) + 8 for m in rows[0][9].tolist()]
        return ([middle, rows[0][3].tolist(), summary[0][0].tolist()],
                [rows[1][9].tolist(), rows[1][3].tolist(), summary[1][0].tolist()])

    logits = [slow_logit(query.tolist(), 127, *pair, 16)[0]
              for pair in zip(*reads(keys), strict=True)]
    assert got.logits.values.tolist() == logits
    assert got.state == slow_state(logits, [1, 1, 14], *reads(values))
    assert got.output.view(np.uint32).tolist() == slow_normalise(got.state)


@pytest.mark.parametrize("call, error, text", [
    (lambda: pipeline.logits(np.zeros(4, int), 255, np.zeros((1, 4), int), [[0]], 16), ValueError,
     "query_exponent must be in 0..254, not 255"),
    (lambda: pipeline.logits(np.full(4, 200), 0, np.zeros((1, 4), int), [[0]], 8), ValueError,
     "query must be in -128..127"),
    (lambda: pipeline.logits(np.zeros(4, int), 0, np.zeros((1, 6), int), [[0]], 16), ValueError,
     "query must have shape (6), not (4,)"),
    (lambda: pipeline.accumulate([0], [0], np.zeros((1, 4), int), [[0]]), ValueError,
     "weights must be in 1..16"),
    (lambda: pipeline.accumulate([0], [1], np.zeros((1, 4), int), [[0, 0, 0]]), ValueError,
     "exponents must have a count that divides 4, not 3"),
    (lambda: pipeline.normalise(3), TypeError, "state must be a State, not 3"),
    (lambda: pipeline.items([3]), ValueError, "classes must be in 0..2"),
    (lambda: pipeline.attend(np.zeros(4, int), 0, None, None, None, 16), TypeError,
     "chosen must be Items, not None"),
])
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
