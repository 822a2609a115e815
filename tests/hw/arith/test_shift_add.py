import random

import pytest

from hw.arith.shift_add import ShiftAdd
from tests.hw.arith.pipeline import run_pipeline


@pytest.mark.parametrize("pause", [0.0, 0.4])
@pytest.mark.parametrize("bits, is_signed", [(64, True), (64, False), (20, True)])
def test_sums(bits, is_signed, pause):
    rng = random.Random(bits)
    low = -(1 << (bits - 1)) if is_signed else 0
    high = low + (1 << bits) - 1
    cases = [{"a": rng.choice([low, high, rng.randint(low, high)]),
              "b": rng.choice([low, high, rng.randint(low, high)]),
              "shift_a": rng.choice([0, 63, rng.randrange(64)]),
              "shift_b": rng.choice([0, 63, rng.randrange(64)])} for _ in range(500)]
    outputs = run_pipeline(ShiftAdd(bits=bits, is_signed=is_signed), cases, ["o"],
                           latency=ShiftAdd.LATENCY, pause_probability=pause)
    for case, output in zip(cases, outputs, strict=True):
        exact = (case["a"] >> case["shift_a"]) + (case["b"] >> case["shift_b"])
        assert output["o"] == (exact - low) % (1 << bits) + low


def test_bad_arguments():
    with pytest.raises(ValueError, match="ShiftAdd bits must be at least 2, not 1"):
        ShiftAdd(bits=1, is_signed=True)
    with pytest.raises(TypeError, match="ShiftAdd is_signed must be a bool, not 1"):
        ShiftAdd(bits=8, is_signed=1)
