import numpy as np
import pytest

from golden.pipeline import accumulate
from hw.attention.layouts import Kind
from hw.attention.softmax import Softmax
from hw.config import EMPTY_MAXIMUM
from tests.hw.attention.rows import make_config, softmax_items
from tests.hw.harness import run_stream_test

END = {"kind": Kind.END}


def feed(queries):
    beats = []
    for logits, weights, saturated in queries:
        beats += [
            {"kind": Kind.SUMMARY if weight > 1 else Kind.FULL, "logit": logit, "weight": weight,
             "saturated": clipped}
            for logit, weight, clipped in zip(logits, weights, saturated, strict=True)
        ]
        beats.append(END)
    return beats


def expected(queries):
    items, totals = [], []
    for logits, weights, saturated in queries:
        items += softmax_items(logits, weights)
        nothing = np.zeros((len(logits), 1), np.int8)
        state = accumulate(np.array(logits), np.array(weights), nothing, nothing)
        totals.append({"maximum": state.maximum, "weight_sum": state.weight_sum,
                       "saturated": int(any(saturated))})
    return items, totals


def check(queries, *, seed=0, stall_probability=0.0):
    items, totals = expected(queries)
    result = run_stream_test(
        Softmax(make_config()), feeds={"i": feed(queries)},
        sinks={"o": len(items), "o_total": len(totals)}, seed=seed,
        stall_probability=stall_probability)
    assert result.outputs["o"] == items
    assert result.outputs["o_total"] == totals
    return result


def draw(rng, count, spread):
    """Logits of both signs over ``spread`` bits, with weights and clip marks."""
    logits = rng.integers(-(1 << (spread - 1)), 1 << (spread - 1), count)
    weights = np.where(rng.random(count) < 0.5, 1, rng.integers(1, 17, count))
    return logits.tolist(), weights.tolist(), (rng.random(count) < 0.02).astype(int).tolist()


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("spread", [16, 20, 22, 32])
def test_items_and_totals_equal_golden(spread, stall):
    rng = np.random.default_rng(spread)
    queries = [draw(rng, count, spread) for count in (1, 0, 0, 60, 3, 0, 25, 1, 1, 1)]
    check(queries, seed=spread, stall_probability=stall)


def test_every_weight_at_both_ends_of_an_octave():
    logits = [0xFFFF, 0x0000, 0xFFFE] * 16
    check([(logits, [1 + place // 3 for place in range(48)], [0] * 48)])


def test_ascending_logits():
    logits = [(step << 16) + 77 for step in range(-20, 20)] + [1 << 24, (1 << 31) - 1]
    check([(logits, [16] * len(logits), [0] * len(logits))])


def test_saturated_logits():
    logits = [-(1 << 31), (1 << 31) - 1, -(1 << 31)]
    result = check([(logits, [16, 16, 16], [1, 1, 1]), ([5], [1], [0])])
    assert [item["rise"] for item in result.outputs["o"]] == [0, 63, 0, 0]


def test_largest_sum():
    logits = [0xFFFF] * 1024
    check([(logits, [1] * 1024, [0] * 1024)])


def test_latency_and_throughput():
    rng = np.random.default_rng(4)
    result = check([draw(rng, 10, 20), draw(rng, 1, 20), draw(rng, 9, 20)])
    taken = result.input_cycles["i"]
    assert taken == list(range(23))
    ends = [10, 12, 22]
    rows = [cycle for cycle in taken if cycle not in ends]
    assert result.output_cycles["o"] == [cycle + 5 for cycle in rows]
    assert result.output_cycles["o_total"] == [cycle + 7 for cycle in ends]
    assert (Softmax.LATENCY, Softmax.TOTAL_LATENCY) == (5, 7)


def test_empty_query():
    result = check([([], [], [])])
    assert result.outputs["o_total"] == [
        {"maximum": EMPTY_MAXIMUM, "weight_sum": 0, "saturated": 0}]


def test_bad_config():
    with pytest.raises(TypeError, match="Softmax config must be an AttentionConfig, not None"):
        Softmax(None)
