import numpy as np
import pytest

from golden.fixed import rnd, sat, saturates
from hw.arith.align import Align
from tests.hw.arith.pipeline import run_pipeline


@pytest.mark.parametrize("in_bits, out_bits", [(29, 40), (12, 20), (2, 3)])
@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_equals_golden(in_bits, out_bits, pause):
    rng = np.random.default_rng(in_bits)
    low, high = -(1 << (in_bits - 1)), (1 << (in_bits - 1)) - 1
    cases = [(value, drop) for drop in range(128) for value in (low, high, 0, 1, -1)]
    for _ in range(600):
        value = int(rng.integers(low, high + 1)) >> int(rng.integers(in_bits))
        cases.append((value, int(rng.integers(128))))
    outputs = run_pipeline(
        Align(in_bits=in_bits, out_bits=out_bits),
        [{"i": value, "drop": drop} for value, drop in cases], ["o", "carry", "clipped"],
        latency=Align.LATENCY, pause_probability=pause)
    for (value, drop), output in zip(cases, outputs, strict=True):
        shift = out_bits - drop
        exact = value << shift if shift >= 0 else rnd(value, -shift)
        assert output["o"] + output["carry"] == sat(exact, out_bits)
        assert output["clipped"] == saturates(exact, out_bits)


def test_bad_arguments():
    with pytest.raises(ValueError, match="Align out_bits must be at least 30, not 29"):
        Align(in_bits=29, out_bits=29)
    with pytest.raises(ValueError, match=r"Align in_bits \+ out_bits must be at most 126, not 127"):
        Align(in_bits=63, out_bits=64)
    with pytest.raises(TypeError, match="Align in_bits must be an integer, not 2.0"):
        Align(in_bits=2.0, out_bits=8)
