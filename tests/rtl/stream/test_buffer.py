import pytest
from amaranth.hdl import signed
from amaranth.lib import data

from hw.stream import Queue, SkidBuffer
from sim.build import build_and_run

LAYOUT = data.StructLayout({"tag": 4, "value": data.ArrayLayout(signed(3), 2)})


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_queue(depth):
    build_and_run(Queue(LAYOUT, depth=depth), name="queue", bench="tests.rtl.stream.bench_buffer",
                  arguments={"capacity": depth})


def test_skid_buffer():
    build_and_run(SkidBuffer(LAYOUT), name="skid_buffer", bench="tests.rtl.stream.bench_buffer",
                  arguments={"capacity": 2})
