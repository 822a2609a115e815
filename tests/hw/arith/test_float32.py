import random

import numpy as np
import pytest

from hw.arith.float32 import FloatPack
from tests.hw.arith.pipeline import run_pipeline


def nearest(sign, significand, exponent):
    """The same in float64, where a significand of 52 bits is exact."""
    value = np.ldexp(np.float64(significand), exponent)
    with np.errstate(over="ignore"):
        rounded = min(np.float32(value), np.finfo(np.float32).max)
    return int((-rounded if sign else rounded).view(np.uint32))


def draw(rng, bits):
    """Significands that end in the patterns that decide a rounding."""
    low = rng.choice([0, 1, rng.getrandbits(30), 1 << 27, 1 << 28, 3 << 27, (1 << 28) - 1])
    return ((1 << (bits - 1 - rng.randrange(2))) | (rng.getrandbits(bits - 2) >> 28 << 28)) ^ low


@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_equals_numpy(pause):
    rng = random.Random(4)
    cases = [(0, 0, exponent) for exponent in (-1024, -200, 0, 1023)]
    cases += [(0, (1 << 52) - 1, exponent) for exponent in range(-240, 90)]
    cases += [(1, 1 << 50, exponent) for exponent in range(-240, 90)]
    cases += [(rng.randrange(2), draw(rng, 52), rng.randint(-230, 80)) for _ in range(1500)]
    outputs = run_pipeline(
        FloatPack(significand_bits=52, exponent_bits=11),
        [{"sign": s, "significand": value, "exponent": e} for s, value, e in cases], ["o"],
        latency=FloatPack.LATENCY, pause_probability=pause)
    for case, output in zip(cases, outputs, strict=True):
        assert output["o"] == nearest(*case), case


def test_bad_arguments():
    with pytest.raises(ValueError, match="FloatPack significand_bits must be at least 27, not 26"):
        FloatPack(significand_bits=26, exponent_bits=8)
