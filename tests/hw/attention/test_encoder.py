import numpy as np
import pytest

from golden.hashing import code_to_int, encode_keys, encode_queries, random_weights
from hw.attention.encoder import Encoder
from hw.config import AttentionConfig
from tests.hw.attention.loaded import Loaded
from tests.hw.harness import run_stream_test


def make_config(**changes):
    fields = {"head_dim": 32, "code_bits": 32, "lanes": 4, "max_tokens": 256, "memory_bytes": 16,
              **changes}
    return AttentionConfig(**fields)


CONFIGS = [
    make_config(),
    make_config(head_dim=64, encoder_lanes=2, encoder_sets=3),
    make_config(head_dim=128, encoder_lanes=8, query_bits=8),
    make_config(head_dim=64, exponent_block=64, encoder_lanes=4),
    make_config(encoder_lanes=32, code_bits=32),
]


def config_name(config):
    return f"d{config.head_dim}-block{config.exponent_block}-lanes{config.encoder_lanes}"


class Work:
    """Weights for all sets, vectors, and the codes that golden gives them."""

    def __init__(self, config, seed, count, *, extreme=False):
        self.config = config
        self.rng = np.random.default_rng(seed)
        self.weights = [
            -128 * np.ones((config.code_bits, config.head_dim), np.int64) if extreme
            else random_weights(config.code_bits, config.head_dim, seed + number).astype(np.int64)
            for number in range(2 * config.encoder_sets)]
        made = [self.make(bool(self.rng.integers(2)), extreme) for _ in range(count)]
        self.requests = [request for request, _ in made]
        self.codes = [code for _, code in made]

    def make(self, is_key, extreme):
        config, rng = self.config, self.rng
        limit = 1 << (7 if is_key else config.query_bits - 1)
        vector = (np.full(config.head_dim, -limit) if extreme
                  else rng.integers(-limit, limit, config.head_dim))
        # Most blocks are near each other, a few so far apart that one drops out.
        exponents = np.clip(rng.integers(255) + rng.choice([0, 1, 3, 9, 40], config.blocks), 0, 254)
        weight_set = int(rng.integers(config.encoder_sets))
        weights = self.weights[2 * weight_set + is_key]
        bits = (encode_keys(weights, vector, exponents) if is_key
                else encode_queries(weights, vector))
        request = {"is_key": int(is_key), "weight_set": weight_set,
                   "vector": vector.tolist(), "exponents": exponents.tolist()}
        return request, code_to_int(bits)

    def rows(self):
        """All rows of the weight memory, in an order that leaves no row twice in a word."""
        table = np.concatenate(self.weights)
        return [{"index": int(index),
                 "data": int.from_bytes(table[index].astype(np.int8).tobytes(), "little")}
                for index in self.rng.permutation(len(table))]


def encode(work, *, seed=1, stall_probability=0.0):
    """Load the weights, then encode, and compare with golden."""
    rows = work.rows()
    result = run_stream_test(
        Loaded(Encoder(work.config), loads="i_weight", count=len(rows)),
        feeds={"i_weight": rows, "i": work.requests}, sinks={"o": len(work.codes)},
        seed=seed, stall_probability=stall_probability)
    assert result.outputs["o"] == work.codes
    return result


@pytest.mark.parametrize("config", CONFIGS, ids=config_name)
@pytest.mark.parametrize("stall_probability", [0.0, 0.5])
def test_codes(config, stall_probability):
    encode(Work(config, seed=3, count=12), stall_probability=stall_probability)


@pytest.mark.parametrize("config", CONFIGS[:3], ids=config_name)
def test_extreme_sums(config):
    encode(Work(config, seed=4, count=4, extreme=True))


@pytest.mark.parametrize("config", CONFIGS, ids=config_name)
def test_cycles(config):
    result = encode(Work(config, seed=5, count=10))
    words = config.code_bits // config.encoder_lanes
    taken, given = result.input_cycles["i"], result.output_cycles["o"]
    assert given[0] - taken[0] == Encoder(config).latency
    assert [b - a for a, b in zip(taken, taken[1:], strict=False)] == [words] * 9
    assert [b - a for a, b in zip(given, given[1:], strict=False)] == [words] * 9


def test_latency_of_the_presets_shape():
    # 64 words of which the last takes 2 cycles to the lane, 3 + 2 in the lane, 1 in the queue.
    config = make_config(head_dim=64, code_bits=64)
    assert Encoder(config).latency == 63 + 2 + 5 + 1


def test_weights_can_be_replaced():
    config = make_config(encoder_lanes=4)
    work = Work(config, seed=6, count=3)
    late = Work(config, seed=7, count=3)
    rows = [*work.rows(), *late.rows()]
    result = run_stream_test(
        Loaded(Encoder(config), loads="i_weight", count=len(rows)),
        feeds={"i_weight": rows, "i": late.requests}, sinks={"o": 3}, seed=1)
    assert result.outputs["o"] == late.codes


def test_refuses_what_is_no_configuration():
    with pytest.raises(TypeError, match="Encoder config must be an AttentionConfig, not 3"):
        Encoder(3)
