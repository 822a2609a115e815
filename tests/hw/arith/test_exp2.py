import numpy as np
import pytest

from golden.exp2 import exp2_mantissa
from golden.exp2 import exp2_table as golden_table
from hw.arith.exp2 import Exp2, exp2_table
from tests.hw.arith.pipeline import run_pipeline


def test_table_equals_golden():
    assert exp2_table() == golden_table().tolist()
    assert exp2_table()[0] == 1 << 24
    assert exp2_table()[-1] == 1 << 25


@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_mantissa_equals_golden(pause):
    rng = np.random.default_rng(7)
    edges = [place * 256 + rest
             for place in (0, 1, 127, 128, 254, 255) for rest in (0, 1, 128, 255)]
    fractions = edges + rng.integers(0, 1 << 16, 1000).tolist()
    outputs = run_pipeline(Exp2(), [{"fraction": fraction} for fraction in fractions], ["mantissa"],
                           latency=Exp2.LATENCY, pause_probability=pause)
    assert [output["mantissa"] for output in outputs] == exp2_mantissa(np.array(fractions)).tolist()
