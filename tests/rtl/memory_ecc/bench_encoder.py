"""Check bits of random lines equal the golden code's."""

import random

import cocotb
import numpy as np

from golden.memory import ecc
from sim.stream import StreamSink, StreamSource
from sim.testbench import start


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(stall=[0.0, 0.4])
async def encodes_as_golden(dut, stall):
    await start(dut)
    source = StreamSource(dut, "i", idle_probability=stall)
    sink = StreamSink(dut, "o", stall_probability=stall)
    lines = [random.randbytes(64) for _ in range(300)]
    sent = [{"data": int.from_bytes(line, "little"), "poison": random.getrandbits(1),
             "meta": random.getrandbits(2)} for line in lines]
    source.send(sent)
    checks = ecc.encode_line(np.frombuffer(b"".join(lines), np.uint8).reshape(-1, 64))
    assert await sink.receive(300) == [
        {**line, "check": int.from_bytes(check.tobytes(), "little")}
        for line, check in zip(sent, checks, strict=True)]
