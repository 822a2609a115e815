import numpy as np
import pytest

from hw.attention.layouts import Kind
from hw.attention.scorer import Scorer
from tests.hw.attention.rows import SHAPES, make_config, make_query, row_beats, shape_name
from tests.hw.harness import run_stream_test


def run(config, queries, *, seed, stall_probability=0.0):
    """Load all slots first (the test's own order), then stream the rows of all queries."""
    beats = [beat for query in queries
             for beat in row_beats(config, query.keys, slot=query.slot,
                                   logits_only=query.logits_only)]
    loaded = []

    async def load(ctx):
        # The last query of a slot wins: tests give each slot one vector.
        for query in queries:
            ctx.set(dut.i_query.payload, query.vector_item())
            ctx.set(dut.i_query.valid, 1)
            await ctx.tick()
            loaded.append(query.slot)
        ctx.set(dut.i_query.valid, 0)

    dut = Scorer(config)
    count = sum(len(query.keys) + 1 for query in queries)
    # An idle END in front covers the cycles in which the slots are loaded.
    idle = [{"kind": Kind.END, "last": 1}] * (len(queries) + 1)
    result = run_stream_test(
        dut, feeds={"i_key": idle + beats}, sinks={"o": count + len(idle)}, seed=seed,
        stall_probability=stall_probability, testbenches=[load])
    assert len(loaded) == len(queries)
    result.outputs["o"] = result.outputs["o"][len(idle):]
    result.output_cycles["o"] = result.output_cycles["o"][len(idle):]
    result.input_cycles["i_key"] = result.input_cycles["i_key"][len(idle):]
    return result, beats


def expected(config, queries):
    return [item for query in queries for item in query.logit_items(config)]


@pytest.mark.parametrize("stall", [0.0, 0.35])
@pytest.mark.parametrize("config", SHAPES, ids=shape_name)
def test_logits_equal_golden(config, stall):
    rng = np.random.default_rng(len(shape_name(config)))
    queries = [make_query(rng, config, count, slot=slot)
               for slot, count in [(1, 20), (3, 0), (0, 9)]]
    queries[2].logits_only = True
    result, _ = run(config, queries, seed=5, stall_probability=stall)
    assert result.outputs["o"] == expected(config, queries)


@pytest.mark.parametrize("config", SHAPES, ids=shape_name)
def test_extreme_exponents_and_saturation(config):
    rng = np.random.default_rng(11)
    queries = [
        make_query(rng, config, 40, slot=slot, exponent=exponent, exponents=(0, 254))
        for slot, exponent in enumerate([0, 127, 254])
    ]
    # The ends of the range: no rounding may carry past them.
    queries[0].vector[:] = -(1 << (config.query_bits - 1))
    queries[0].keys.mantissas[:8] = -128
    queries[0].keys.exponents[:8] = np.arange(247, 255)[:, np.newaxis]
    result, _ = run(config, queries, seed=5)
    items = expected(config, queries)
    assert {item["saturated"] for item in items} == {0, 1}
    assert {item["logit"] for item in items} >= {-(1 << 31), (1 << 31) - 1, 0}
    assert result.outputs["o"] == items


def test_shift_by_shift():
    """Every scale of a sum, from saturated to vanished, for both signs."""
    config = make_config()
    rng = np.random.default_rng(3)
    queries = []
    for slot, exponent in enumerate([20, 140, 250]):
        query = make_query(rng, config, 128, slot=slot, exponent=exponent, zeros=0)
        query.keys.exponents[:, 0] = np.arange(128) + (64 if exponent == 140 else 0)
        queries.append(query)
    result, _ = run(config, queries, seed=5)
    assert result.outputs["o"] == expected(config, queries)


@pytest.mark.parametrize("config", SHAPES, ids=shape_name)
def test_latency_and_throughput(config):
    rng = np.random.default_rng(2)
    queries = [make_query(rng, config, 12, slot=slot) for slot in (0, 1)]
    result, beats = run(config, queries, seed=5)
    taken = result.input_cycles["i_key"]
    assert taken == list(range(taken[0], taken[0] + len(beats)))
    last = [cycle for cycle, beat in zip(taken, beats, strict=True) if beat["last"]]
    latency = {32: 7, 64: 8, 128: 8}[config.exponent_block] + (config.blocks > 2)
    assert Scorer(config).latency == latency
    assert result.output_cycles["o"] == [cycle + latency for cycle in last]


def test_slot_is_usable_in_the_cycle_after_its_transfer():
    config = make_config()
    query = make_query(np.random.default_rng(1), config, 1, slot=2)
    result = run_stream_test(
        Scorer(config),
        # Both streams transfer from cycle 0: the END gives the vector its one cycle.
        feeds={"i_query": [query.vector_item()],
               "i_key": [{"kind": Kind.END, "last": 1}] + row_beats(config, query.keys, slot=2)},
        sinks={"o": 3}, seed=0)
    assert result.input_cycles["i_query"] == [0]
    assert result.input_cycles["i_key"][1] == 1
    assert result.outputs["o"][1:] == query.logit_items(config)


def test_bad_config():
    with pytest.raises(TypeError, match="Scorer config must be an AttentionConfig, not 32"):
        Scorer(32)
