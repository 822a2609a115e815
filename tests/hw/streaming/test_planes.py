import numpy as np
import pytest

from golden import mxint
from hw.config import StreamingConfig
from hw.streaming.planes import Planes
from tests.hw.harness import run_stream_test

GEOMETRIES = [(32, 8, 32), (32, 32, 32), (64, 8, 64), (64, 64, 32), (64, 32, 32), (128, 16, 32),
              (128, 64, 32), (256, 16, 256), (256, 128 // 2, 32)]


def config_of(head_dim, bus_bytes, block):
    return StreamingConfig(head_dim=head_dim, bus_bytes=bus_bytes, exponent_block=block)


def make_rows(config, rows, rng):
    """Mantissas with many zero blocks, and blocks with a single bit set."""
    shape = (rows, config.blocks, config.exponent_block)
    mantissas = rng.integers(-128, 128, shape)
    kind = rng.integers(0, 3, shape[:2])[..., np.newaxis]
    single = np.where(rng.integers(0, config.exponent_block, shape[:2])[..., np.newaxis]
                      == np.arange(config.exponent_block), 1 << rng.integers(0, 7, shape), 0)
    mantissas = np.where(kind == 0, mantissas, np.where(kind == 1, single, 0))
    exponents = rng.integers(1, 255, shape[:2])
    return mantissas.astype(np.int8).reshape(rows, -1), exponents.astype(np.uint8)


def last_of(config, index):
    return index % config.row_beats == config.row_beats - 1


def mantissa_beats(config, mantissas, exponents):
    lanes, block = config.bus_bytes, config.exponent_block
    shared = exponents.repeat(block, axis=1).reshape(-1, lanes)[:, ::min(block, lanes)]
    return [{"mantissas": beat, "exponents": e, "last": last_of(config, index)}
            for index, (beat, e) in enumerate(zip(
                mantissas.reshape(-1, lanes).tolist(), shared.tolist(), strict=True))]


def stored_beats(config, mantissas, exponents):
    packed = mxint.pack_row(mantissas).reshape(-1, config.bus_bytes)
    return [{"data": int.from_bytes(beat.tobytes(), "little"),
             "exponents": exponents[index // config.row_beats].tolist(),
             "last": last_of(config, index)} for index, beat in enumerate(packed)]


@pytest.mark.parametrize("head_dim, bus_bytes, block", GEOMETRIES)
@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("is_stored", [False, True])
def test_rows(head_dim, bus_bytes, block, stall, is_stored):
    config = config_of(head_dim, bus_bytes, block)
    mantissas, exponents = make_rows(config, 40, np.random.default_rng(head_dim + bus_bytes))
    canonical = mxint.canonical(mantissas, exponents)
    assert (canonical != exponents).any()
    if is_stored:
        feeds = {"i_stored": stored_beats(config, mantissas, exponents)}
    else:
        feeds = {"i": mantissa_beats(config, mantissas, canonical)}
    expected = stored_beats(config, mantissas, canonical)
    result = run_stream_test(Planes(config), feeds=feeds, sinks={"o": len(expected)}, seed=2,
                             stall_probability=stall)
    assert result.outputs["o"] == expected
    if not stall:
        (taken,), given = result.input_cycles.values(), result.output_cycles["o"]
        assert taken == list(range(len(expected)))
        assert given == list(range(given[0], given[0] + len(expected)))
        assert given[0] - taken[config.row_beats - 1] == Planes.LATENCY
