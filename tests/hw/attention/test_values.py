import numpy as np
import pytest

from hw.attention.values import Values
from tests.hw.attention.rows import (
    SHAPES,
    make_config,
    make_query,
    row_beats,
    shape_name,
    softmax_items,
)
from tests.hw.harness import run_stream_test


def run(config, queries, *, seed=0, stall_probability=0.0, timeout_cycles=10_000):
    beats, items, totals, states = [], [], [], []
    for query in queries:
        if query.logits_only:
            beats += row_beats(config, query.values, logits_only=True)[-1:]
            continue
        beats += row_beats(config, query.values)
        items += softmax_items(query.logits(config).values, query.values.weights)
        totals.append(query.softmax_total(config))
        states += query.state_beats(config)
    result = run_stream_test(
        Values(config), feeds={"i_row": beats, "i_item": items, "i_total": totals},
        sinks={"o": len(states)}, seed=seed, stall_probability=stall_probability,
        timeout_cycles=timeout_cycles)
    assert result.outputs["o"] == states
    return result


def flat(query):
    """Let no item raise either maximum."""
    query.vector[:] = 0
    query.values.weights[:] = 1
    query.values.exponents[:] = query.values.exponents[:1]
    return query


@pytest.mark.parametrize("stall", [0.0, 0.35])
@pytest.mark.parametrize("config", SHAPES, ids=shape_name)
def test_states_equal_golden(config, stall):
    rng = np.random.default_rng(len(shape_name(config)) + 1)
    queries = [make_query(rng, config, count) for count in (12, 0, 1, 3, 0, 9)]
    queries[3].logits_only = queries[4].logits_only = True
    run(config, queries, seed=3, stall_probability=stall)


@pytest.mark.parametrize("exponents", [(0, 254), (0, 3), (127, 127)])
def test_exponent_ranges(exponents):
    config = make_config(head_dim=64)
    rng = np.random.default_rng(exponents[1])
    queries = [make_query(rng, config, 20, exponent=100, exponents=exponents) for _ in range(3)]
    run(config, queries)


@pytest.mark.parametrize("rise", [1, 2, 4, 16, 63, 200])
def test_each_row_rescales(rise):
    """Exponents that rise with each row; the sums fall by ``rise`` octaves each time."""
    config = make_config()
    query = flat(make_query(np.random.default_rng(rise), config, 1 + 254 // rise, zeros=0))
    query.values.exponents[:] = np.arange(0, 255, rise)[:, np.newaxis]
    result = run(config, [query])
    # Every beat in its cycle, and each rise but the first row's in so many more.
    steps = {1: 0, 2: 1, 4: 0, 16: 0, 63: 8, 200: 8}[rise]
    end = len(row_beats(config, query.values)) - 1 + (len(query.values) - 1) * steps
    assert result.input_cycles["i_row"][0] == 0
    assert result.output_cycles["o"][0] == end + Values.END_LATENCY


def test_largest_sums():
    config = make_config(max_tokens=256)
    query = flat(make_query(np.random.default_rng(0), config, 256))
    query.values.mantissas[:, :16], query.values.mantissas[:, 16:] = -128, 127
    query.values.exponents[:] = 200
    query.values.kinds[:] = 0
    run(config, [query])


@pytest.mark.parametrize("config", SHAPES, ids=shape_name)
def test_latency_and_throughput(config):
    rng = np.random.default_rng(6)
    count = config.head_dim // config.result_lanes
    # Just enough rows that no END has to wait for the state before it.
    queries = [flat(make_query(rng, config, count + 4)) for _ in range(3)]
    result = run(config, queries)
    taken = result.input_cycles["i_row"]
    assert taken == list(range(len(taken)))
    beats = [row_beats(config, query.values) for query in queries]
    ends = np.cumsum([len(part) for part in beats]) - 1
    starts = [int(end) + Values.END_LATENCY for end in ends]
    assert result.output_cycles["o"] == [
        start + place for start in starts for place in range(count)]
    assert Values.WEIGHT_LATENCY == 2
    assert Values.END_LATENCY == 8


def test_end_waits_for_the_state_before_it():
    config = make_config()
    queries = [flat(make_query(np.random.default_rng(1), config, 1)) for _ in range(4)]
    result = run(config, queries)
    gaps = np.diff(result.output_cycles["o"][::8])
    # Eight beats, and the way of the next END through clearing and capture.
    assert set(gaps) == {13}


def test_bad_config():
    with pytest.raises(TypeError, match="Values config must be an AttentionConfig, not 1"):
        Values(1)
