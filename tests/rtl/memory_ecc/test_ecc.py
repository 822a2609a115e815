import pytest

from hw.memory.ecc import LineDecoder, LineEncoder
from sim.build import build_and_run


@pytest.mark.parametrize("unit, name", [(LineEncoder, "encoder"), (LineDecoder, "decoder")])
def test_ecc(unit, name):
    build_and_run(unit(), name=f"line_{name}", bench=f"tests.rtl.memory_ecc.bench_{name}")
