import numpy as np
import pytest

from hw.attention.head import HeadSlice
from hw.attention.layouts import Kind
from tests.hw.attention.rows import SHAPES, make_config, make_query, row_beats, shape_name
from tests.hw.harness import run_stream_test


def slot_loader(dut, queries):
    """Loads the first vectors at once, and each later one when its slot's last rows were taken."""

    async def load(ctx):
        waiting = [query.vector_item() for query in queries]
        free = dut.config.query_slots
        while True:
            ctx.set(dut.i_query.valid, bool(free and waiting))
            if free and waiting:
                ctx.set(dut.i_query.payload, waiting.pop(0))
                free -= 1
            _, _, valid, ready, key = await ctx.tick().sample(
                dut.i_key.valid, dut.i_key.ready, dut.i_key.payload)
            # The ENDs that lead in name no slot in use: they are those with a position.
            free += bool(valid and ready and key.kind == Kind.END and key.position == 0)

    return load


def run(config, queries, *, seed=0, stall_probability=0.0, timeout_cycles=20_000):
    """Run queries back to back and compare all that comes out with golden."""
    for index, query in enumerate(queries):
        query.slot = index % config.query_slots
    # ENDs that lead in, while the first slots are loaded.
    lead = [{"kind": Kind.END, "last": 1, "logits_only": 1, "position": 1}] * config.query_slots
    keys, values, states, logits = list(lead), [], [], []
    for query in queries:
        keys += row_beats(config, query.keys, slot=query.slot, logits_only=query.logits_only)
        rows = row_beats(config, query.values, logits_only=query.logits_only)
        values += rows[-1:] if query.logits_only else rows
        if query.logits_only:
            logits += query.logit_items(config)
        else:
            states += query.state_beats(config)
    dut = HeadSlice(config)
    result = run_stream_test(
        dut, feeds={"i_key": keys, "i_value": values},
        sinks={"o_state": len(states), "o_logit": len(logits) + len(lead)}, seed=seed,
        stall_probability=stall_probability, timeout_cycles=timeout_cycles,
        testbenches=[slot_loader(dut, queries)])
    for stream in (result.outputs["o_logit"], result.output_cycles["o_logit"],
                   result.input_cycles["i_key"]):
        del stream[:len(lead)]
    assert result.outputs["o_logit"] == logits
    assert result.outputs["o_state"] == states
    return result


@pytest.mark.parametrize("config", SHAPES, ids=shape_name)
def test_queries_back_to_back(config):
    rng = np.random.default_rng(config.head_dim + config.query_bits)
    queries = [make_query(rng, config, count) for count in (8, 0, 5, 1, 3, 12, 0)]
    queries[2].logits_only = queries[6].logits_only = True
    run(config, queries, seed=17, stall_probability=0.3)


@pytest.mark.parametrize("seed", range(4))
def test_mixed_lengths_under_stalls(seed):
    config = make_config(result_lanes=16, query_slots=3)
    rng = np.random.default_rng(seed)
    queries = [make_query(rng, config, int(rng.integers(0, 12))) for _ in range(12)]
    for query in queries:
        query.logits_only = bool(rng.random() < 0.3)
    run(config, queries, seed=seed, stall_probability=0.2 * seed)


def test_extremes():
    config = make_config(head_dim=64)
    rng = np.random.default_rng(23)
    queries = [
        make_query(rng, config, 40, exponent=exponent, exponents=(0, 254))
        for exponent in (0, 127, 254)
    ]
    result = run(config, queries)
    assert {beat["saturated"] for beat in result.outputs["o_state"]} == {0, 1}


def test_rows_of_zeros():
    config = make_config()
    queries = [make_query(np.random.default_rng(2), config, 9, zeros=1) for _ in range(2)]
    for query in queries:
        query.values.kinds[:] = 0  # a coarse zero reads as 8
    result = run(config, queries)
    assert all(beat["values"] == [0] * 4 for beat in result.outputs["o_state"])
    assert result.outputs["o_state"][0]["weight_sum"] > 0


def test_ascending_logits():
    """Each row outweighs all before it, by an octave and a bit."""
    config = make_config()
    query = make_query(np.random.default_rng(4), config, 60, exponent=127, zeros=0)
    query.keys.mantissas[:] = 0
    query.keys.mantissas[:, 0] = np.arange(-60, 60, 2)
    query.keys.exponents[:] = 133
    query.keys.kinds[:] = 0
    query.vector[:] = 1 << 14
    run(config, [query], seed=1)


@pytest.mark.parametrize("config", SHAPES, ids=shape_name)
def test_latency_and_throughput(config):
    rng = np.random.default_rng(9)
    count = config.head_dim // config.result_lanes + 5
    queries = [make_query(rng, config, count) for _ in range(3)]
    for query in queries:
        # Nothing rises, so nothing is rescaled.
        query.vector[:] = 0
        query.values.weights[:] = 1
        query.values.exponents[:] = 120
        query.keys.kinds[-1] = 0
    result = run(config, queries)
    keys, values = result.input_cycles["i_key"], result.input_cycles["i_value"]
    assert keys == list(range(keys[0], keys[0] + len(keys)))

    # The V rows were there, and waited for their weights: the last K beat, the latency to the last
    # row's weight, its beats, and six cycles for END to follow.
    latency = {32: 14, 64: 15, 128: 15}[config.exponent_block] + (config.blocks > 2)
    assert HeadSlice(config).probability_latency == latency
    last_beat = keys[len(row_beats(config, queries[0].keys)) - 2]
    beats = 2 // config.planes_per_beat
    assert result.output_cycles["o_state"][0] == last_beat + latency + beats + 4
    second_half = values[len(values) // 2:]
    assert second_half == list(range(second_half[0], second_half[0] + len(second_half)))


def test_logits_leave_as_they_come():
    config = make_config()
    query = make_query(np.random.default_rng(3), config, 6)
    query.logits_only = True
    query.keys.kinds[:] = 1
    result = run(config, [query])
    assert result.output_cycles["o_logit"] == [cycle + 7 for cycle in result.input_cycles["i_key"]]


def test_bad_config():
    with pytest.raises(TypeError, match="HeadSlice config must be an AttentionConfig, not 'tiny'"):
        HeadSlice("tiny")
