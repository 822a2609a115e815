import random

import pytest

from hw.arith.leading import LeadingOne
from tests.hw.arith.pipeline import run_pipeline


@pytest.mark.parametrize("pause", [0.0, 0.4])
@pytest.mark.parametrize("in_bits, out_bits", [(44, 32), (52, 26), (64, 26), (8, 12), (9, 3)])
def test_mantissa_and_octave(in_bits, out_bits, pause):
    rng = random.Random(in_bits)
    values = [0] + [1 << bit for bit in range(in_bits)] + [(2 << bit) - 1 for bit in range(in_bits)]
    values += [rng.getrandbits(rng.randint(1, in_bits)) for _ in range(300)]
    outputs = run_pipeline(
        LeadingOne(in_bits=in_bits, out_bits=out_bits), [{"i": value} for value in values],
        ["mantissa", "octave"], latency=LeadingOne.LATENCY, pause_probability=pause)
    for value, output in zip(values, outputs, strict=True):
        octave = max(value.bit_length() - 1, 0)
        assert output == {"mantissa": (value << (out_bits - 1)) >> octave, "octave": octave}


def test_bad_arguments():
    with pytest.raises(ValueError, match="LeadingOne in_bits must be at least 2, not 1"):
        LeadingOne(in_bits=1, out_bits=8)
