import numpy as np
import pytest

from golden.merge import merge
from golden.state import State
from hw.attention.merge import Merge
from tests.hw.attention.rows import make_config, make_query
from tests.hw.harness import run_stream_test
from tests.states import extreme_states, full_state_beats, make_state

EMPTY = State.empty(32)


def beats(config, state):
    return full_state_beats(state, config.result_lanes)


def run(pairs, *, seed=0, stall_probability=0.0, config=None):
    config = config or make_config(result_lanes=8)
    wanted = [beat for a, b in pairs for beat in beats(config, merge(a, b))]
    result = run_stream_test(
        Merge(config), sinks={"o": len(wanted)}, seed=seed, stall_probability=stall_probability,
        feeds={"i_a": [beat for a, _ in pairs for beat in beats(config, a)],
               "i_b": [beat for _, b in pairs for beat in beats(config, b)]})
    assert result.outputs["o"] == wanted
    return result


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_states_equal_golden(stall):
    rng = np.random.default_rng(12)
    pairs = []
    for _ in range(40):
        a, b = (make_state(rng, octaves=octaves, exponents=octaves)
                for octaves in rng.choice([0, 3, 70], 2))
        pairs += [(a, b), (b, a)]
    run(pairs, seed=5, stall_probability=stall)


def test_empty_sides():
    rng = np.random.default_rng(13)
    states = [make_state(rng) for _ in range(4)]
    pairs = [(EMPTY, EMPTY)] + [pair for s in states for pair in ((s, EMPTY), (EMPTY, s))]
    result = run(pairs)
    assert result.outputs["o"][4:8] == beats(make_config(result_lanes=8), states[0])


def test_extreme_maxima():
    rng = np.random.default_rng(14)
    low, high = extreme_states(rng)
    run([(low, high), (high, low), (low, low)])


def test_parts_of_a_query():
    config = make_config(result_lanes=8)
    rng = np.random.default_rng(15)
    states = [make_query(rng, config, count).state(config) for count in (0, 1, 9, 30)]
    run([(a, b) for a in states for b in states], config=config)


def test_latency_and_throughput():
    rng = np.random.default_rng(16)
    result = run([(make_state(rng), make_state(rng)) for _ in range(5)])
    assert result.input_cycles["i_a"] == result.input_cycles["i_b"] == list(range(20))
    assert result.output_cycles["o"] == [cycle + 5 for cycle in range(20)]
    assert Merge.LATENCY == 5


def test_bad_config():
    with pytest.raises(TypeError, match="Merge config must be an AttentionConfig, not {}"):
        Merge({})
