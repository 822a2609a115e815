"""Lines with up to three errors in a word are corrected, or told, as by the golden code."""

import random

import cocotb
import numpy as np

from golden.memory import ecc
from sim.stream import StreamSink, StreamSource
from sim.testbench import start

COUNT = 300


def make_lines():
    """Lines and check bits as they are read."""
    words = np.frombuffer(random.randbytes(64 * COUNT), "<u8").reshape(-1, 8).astype(np.uint64)
    checks = ecc.encode(words)
    for place in np.ndindex(words.shape):
        if random.random() < 0.2:
            bits = random.sample(range(72), random.randint(1, 3))
            words[place], checks[place] = ecc.flip(words[place], checks[place], *bits)
    return words.astype("<u8").view(np.uint8), checks


def as_int(array):
    return int.from_bytes(array.tobytes(), "little")


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(stall=[0.0, 0.4])
async def decodes_as_golden(dut, stall):
    await start(dut)
    source = StreamSource(dut, "i", idle_probability=stall)
    sink = StreamSink(dut, "o", stall_probability=stall)
    lines, checks = make_lines()
    sent = [{"data": as_int(line), "check": as_int(check), "poison": random.getrandbits(1),
             "meta": random.getrandbits(2)} for line, check in zip(lines, checks, strict=True)]
    source.send(sent)
    golden = ecc.decode_line(lines, checks)
    expected = []
    for stored, line, status in zip(sent, golden.data, golden.status, strict=True):
        is_lost = int((status == ecc.Status.UNCORRECTABLE).any())
        expected.append({
            "data": as_int(line), "poison": stored["poison"] | is_lost, "meta": stored["meta"],
            "status": status.tolist(), "corrected": int((status == ecc.Status.CORRECTED).sum()),
            "is_uncorrectable": is_lost})
    assert await sink.receive(COUNT) == expected
