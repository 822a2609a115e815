import random

import pytest

from hw.arith.divider import Divider
from hw.arith.reciprocal import Reciprocal
from tests.hw.harness import run_stream_test


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("divisor_bits, quotient_bits, bits_per_cycle, latency", [
    (32, 27, 2, 15), (32, 27, 1, 28), (8, 12, 3, 5), (1, 4, 4, 2),
])
def test_quotients(divisor_bits, quotient_bits, bits_per_cycle, latency, stall):
    rng = random.Random(quotient_bits)
    cases = []
    for _ in range(60):
        divisor = rng.choice([1, (1 << divisor_bits) - 1, rng.randrange(1, 1 << divisor_bits)])
        largest = min(2 * divisor - 1, (1 << divisor_bits) - 1)
        cases.append((rng.choice([0, largest, rng.randint(0, largest)]), divisor))
    dut = Divider(divisor_bits=divisor_bits, quotient_bits=quotient_bits,
                  bits_per_cycle=bits_per_cycle)
    result = run_stream_test(
        dut, feeds={"i": [{"numerator": n, "divisor": d} for n, d in cases]}, sinks={"o": 60},
        seed=1, stall_probability=stall)
    assert result.outputs["o"] == [(n << (quotient_bits - 1)) // d for n, d in cases]
    assert dut.latency == latency
    if stall == 0:
        starts = result.input_cycles["i"]
        assert result.output_cycles["o"] == [start + latency for start in starts]
        assert starts == list(range(0, 60 * (latency + 1), latency + 1))


def test_division_by_zero_ends():
    result = run_stream_test(
        Divider(divisor_bits=4, quotient_bits=6), sinks={"o": 2}, seed=0,
        feeds={"i": [{"numerator": 3, "divisor": 0}, {"numerator": 3, "divisor": 2}]})
    assert result.outputs["o"][1] == 48


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_reciprocal(stall):
    rng = random.Random(3)
    values = [0, 1, 2, 3, (1 << 44) - 1, 1 << 43, 1 << 31, (1 << 32) - 1]
    values += [rng.getrandbits(rng.randint(1, 44)) for _ in range(60)]
    dut = Reciprocal(in_bits=44)
    result = run_stream_test(dut, feeds={"i": values}, sinks={"o": len(values)}, seed=2,
                             stall_probability=stall, timeout_cycles=5000)
    for value, output in zip(values, result.outputs["o"], strict=True):
        assert output["is_zero"] == (value == 0)
        if value:
            octave = value.bit_length() - 1
            cut = value << (31 - octave) if octave <= 31 else value >> (octave - 31)
            assert (output["octave"], output["mantissa"]) == (octave, (1 << 57) // cut)
    assert dut.latency == 17
    if stall == 0:
        assert result.output_cycles["o"] == [cycle + 17 for cycle in result.input_cycles["i"]]


def test_bad_arguments():
    with pytest.raises(ValueError, match="Divider bits_per_cycle must be at most 8, not 9"):
        Divider(divisor_bits=8, quotient_bits=8, bits_per_cycle=9)
    with pytest.raises(TypeError, match="Reciprocal in_bits must be an integer, not None"):
        Reciprocal(in_bits=None)
