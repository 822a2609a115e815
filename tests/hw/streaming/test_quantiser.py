import numpy as np
import pytest

from golden.streaming.convert import quantise_elements
from hw.config import StreamingConfig
from hw.streaming.quantiser import Quantiser
from tests.hw.harness import run_stream_test

GEOMETRIES = [(32, 8, 32), (32, 32, 32), (64, 8, 64), (64, 64, 32), (64, 64, 64), (128, 16, 128),
              (256, 64, 256)]


def config_of(head_dim, bus_bytes, block):
    return StreamingConfig(head_dim=head_dim, bus_bytes=bus_bytes, exponent_block=block)


def make_rows(rows, head_dim, block, rng):
    """Significands and exponents that reach every branch: zeros, ties, both ends of E, clipping."""
    shape = (rows, head_dim // block, block)
    bits = rng.integers(0, 16, shape)
    p = rng.integers(0, 1 << 15, shape) >> (15 - np.minimum(bits, 15))
    # Neighbouring exponents make ties; the ends of the range are met too.
    centre = rng.choice([-133, -128, -60, 0, 90, 121], shape[:2])[..., np.newaxis]
    e = np.clip(centre + rng.integers(-1, 2, shape) * rng.integers(0, 14, shape), -133, 121)
    p[rng.random(shape) < 0.1] = 32640
    p *= rng.random(shape[:2])[..., np.newaxis] > 0.15
    p = np.where(rng.random(shape) < 0.5, -p, p)
    return p.reshape(rows, head_dim), e.reshape(rows, head_dim)


def beats_of(p, e, lanes):
    row_beats = p.shape[1] // lanes
    pairs = zip(p.reshape(-1, lanes).tolist(), e.reshape(-1, lanes).tolist(), strict=True)
    return [{"elements": [{"p": a, "e": b} for a, b in zip(*pair, strict=True)],
             "last": index % row_beats == row_beats - 1} for index, pair in enumerate(pairs)]


def expected_beats(p, e, lanes, block):
    mantissas, exponents = quantise_elements(p, e, block)
    of_lane = exponents.repeat(block, axis=1).reshape(-1, lanes)
    row_beats = p.shape[1] // lanes
    return [{"mantissas": beat, "exponents": shared[::min(block, lanes)],
             "last": index % row_beats == row_beats - 1}
            for index, (beat, shared) in enumerate(zip(
                mantissas.reshape(-1, lanes).tolist(), of_lane.tolist(), strict=True))]


@pytest.mark.parametrize("head_dim, bus_bytes, block", GEOMETRIES)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_equals_golden(head_dim, bus_bytes, block, stall):
    config = config_of(head_dim, bus_bytes, block)
    p, e = make_rows(4096 // head_dim, head_dim, block, np.random.default_rng(head_dim + block))
    expected = expected_beats(p, e, bus_bytes, block)
    result = run_stream_test(Quantiser(config), feeds={"i": beats_of(p, e, bus_bytes)},
                             sinks={"o": len(expected)}, seed=3, stall_probability=stall)
    assert result.outputs["o"] == expected


@pytest.mark.parametrize("head_dim, bus_bytes, block", GEOMETRIES)
def test_latency_and_throughput(head_dim, bus_bytes, block):
    config = config_of(head_dim, bus_bytes, block)
    p, e = make_rows(2048 // head_dim, head_dim, block, np.random.default_rng(1))
    beats = beats_of(p, e, bus_bytes)
    dut = Quantiser(config)
    result = run_stream_test(dut, feeds={"i": beats}, sinks={"o": len(beats)}, seed=1)
    taken, given = result.input_cycles["i"], result.output_cycles["o"]
    assert taken == list(range(taken[0], taken[0] + len(beats)))
    assert given == list(range(given[0], given[0] + len(beats)))
    assert given[0] - taken[max(1, block // bus_bytes) - 1] == dut.latency
