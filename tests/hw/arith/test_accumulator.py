import numpy as np
import pytest

from golden.fixed import asr
from hw.arith.accumulator import SHIFT_STEPS, Accumulator
from tests.hw.arith.pipeline import run_pipeline

LANES = 4


def run(operations, *, operand_bits, planes):
    dut = Accumulator(lanes=LANES, weight_bits=33, operand_bits=operand_bits, sum_bits=52,
                      planes=planes)
    outputs = run_pipeline(dut, operations, ["sums"], latency=Accumulator.LATENCY)
    return [output["sums"] for output in outputs]


@pytest.mark.parametrize("operand_bits, planes", [(5, 1), (8, 2)])
def test_equals_golden(operand_bits, planes):
    rng = np.random.default_rng(planes)
    low, high = -(1 << (operand_bits - 1)), (1 << (operand_bits - 1)) - 1
    sums, operations, expected = np.zeros(LANES, np.int64), [], []
    for _ in range(400):
        clear, step, upper = rng.random() < 0.03, int(rng.integers(4)), int(rng.integers(2))
        weight = 0 if clear else int(rng.choice([0, 1, (1 << 33) - 1, rng.integers(1 << 33)]))
        operands = rng.choice([low, high, *rng.integers(low, high, 4)], LANES)
        operations.append({"weight": weight, "operands": operands.tolist(), "upper": upper,
                           "step": step, "clear": int(clear)})
        scale = 8 if upper and planes == 1 else 1
        sums = asr(sums, SHIFT_STEPS[step]) + weight * operands * scale
        if clear:
            sums[:] = 0
        expected.append(sums.tolist())
    assert run(operations, operand_bits=operand_bits, planes=planes) == expected


def test_bad_arguments():
    with pytest.raises(ValueError, match="Accumulator operand_bits must be 5 or 8, not 6"):
        Accumulator(lanes=1, weight_bits=33, operand_bits=6, sum_bits=52, planes=1)
    with pytest.raises(ValueError, match="Accumulator sum_bits must be at least 41, not 40"):
        Accumulator(lanes=1, weight_bits=33, operand_bits=5, sum_bits=40, planes=1)
