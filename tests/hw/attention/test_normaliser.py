import numpy as np
import pytest

from golden.pipeline import normalise
from golden.state import State
from hw.attention.normaliser import Normaliser
from tests.hw.attention.rows import make_config
from tests.hw.harness import run_stream_test


def make_state(rng, config, *, exponent=None, weight_bits=None, value_bits=None):
    """A state of any magnitude that fits the sums, small ones as likely as large ones."""
    bits = rng.integers(1, config.value_sum_bits, config.head_dim) if value_bits is None else (
        np.full(config.head_dim, value_bits))
    values = rng.integers(-(1 << 62), 1 << 62, config.head_dim) >> (63 - bits)
    weight = rng.integers(1 << 62, dtype=np.int64) | (1 << 61)
    kept = int(rng.integers(1, config.weight_sum_bits + 1)) if weight_bits is None else weight_bits
    return State(
        maximum=0, weight_sum=int(weight) >> (62 - kept),
        exponent=int(rng.integers(255)) if exponent is None else exponent, values=values)


def beats(config, state):
    groups = state.values.reshape(-1, config.result_lanes).tolist()
    return [{"maximum": state.maximum, "weight_sum": state.weight_sum, "exponent": state.exponent,
             "values": group, "last": int(place == len(groups) - 1)}
            for place, group in enumerate(groups)]


def expected(config, state):
    bits = normalise(state).view(np.uint32)
    groups = bits.reshape(-1, config.result_lanes).tolist()
    return [{"values": group, "last": int(place == len(groups) - 1)}
            for place, group in enumerate(groups)]


def run(config, states, *, seed=0, stall_probability=0.0, **options):
    wanted = [beat for state in states for beat in expected(config, state)]
    result = run_stream_test(
        Normaliser(config, **options), sinks={"o": len(wanted)}, seed=seed,
        feeds={"i": [beat for state in states for beat in beats(config, state)]},
        stall_probability=stall_probability)
    assert result.outputs["o"] == wanted
    return result


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("config", [
    make_config(), make_config(max_tokens=1 << 20, result_lanes=16)], ids=["short", "long"])
def test_floats_equal_golden(config, stall):
    rng = np.random.default_rng(31)
    run(config, [make_state(rng, config) for _ in range(25)], seed=4, stall_probability=stall)


@pytest.mark.parametrize("exponent, value_bits", [(0, 12), (0, 24), (10, 20), (254, 50), (250, 45)])
def test_ends_of_the_float_range(exponent, value_bits):
    """Zeros, subnormal numbers and the largest finite ones."""
    config = make_config()
    rng = np.random.default_rng(value_bits)
    states = [make_state(rng, config, exponent=exponent, value_bits=value_bits, weight_bits=bits)
              for bits in (33, 44, 20, 1)]
    run(config, states)


def test_edges():
    config = make_config()
    limit = 1 << (config.value_sum_bits - 1)
    edges = np.resize([-limit, limit - 1, 0, 1, -1, 1 << 26, (1 << 26) - 1, -(1 << 25)], 32)
    powers = [1, 1 << 31, 1 << 32, (1 << 32) - 1, (1 << config.weight_sum_bits) - 1]
    states = [State(maximum=0, weight_sum=weight, exponent=exponent, values=edges)
              for weight in powers for exponent in (0, 1, 127, 200, 254)]
    run(config, [State.empty(32), *states, State.empty(32)])


@pytest.mark.parametrize("bits_per_cycle, latency", [(1, 35), (2, 22)])
def test_latency_and_throughput(bits_per_cycle, latency):
    config = make_config()
    rng = np.random.default_rng(3)
    states = [make_state(rng, config) for _ in range(3)]
    result = run(config, states, bits_per_cycle=bits_per_cycle)
    assert Normaliser(config, bits_per_cycle=bits_per_cycle).latency == latency
    taken, given = result.input_cycles["i"], result.output_cycles["o"]
    for start in range(0, 24, 8):
        assert given[start:start + 8] == list(range(taken[start] + latency,
                                                    taken[start] + latency + 8))
    # The next state enters in the cycle after the last beat went into the multipliers.
    assert taken[8] == given[7] - 5 + 1


def test_bad_arguments():
    with pytest.raises(TypeError, match="Normaliser config must be an AttentionConfig, not 32"):
        Normaliser(32)
    with pytest.raises(ValueError, match="Normaliser bits_per_cycle must be at least 1, not 0"):
        Normaliser(make_config(), bits_per_cycle=0)
