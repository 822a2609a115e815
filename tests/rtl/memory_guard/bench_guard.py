"""Requests at random, within and beside windows, are judged as by the golden guard."""

import random

import cocotb

from golden.memory.windows import Guard, Window
from sim.payload import pack, unpack
from sim.stream import StreamSink, StreamSource
from sim.testbench import cycles, port_of, reset, start

COUNT, WINDOWS, LINES = 300, 8, 64


def set_windows(dut, windows):
    dut.table.value = pack(port_of("table"), [
        {"valid": 1, "context": window.context, "first": window.base // 64,
         "last": (window.base + window.size) // 64 - 1, "writable": window.writable}
        for window in windows])


def make_windows():
    return [Window(context=random.randrange(3), base=64 * random.randrange(LINES),
                   size=64 * random.randint(1, 20), writable=random.random() < 0.5)
            for _ in range(WINDOWS)]


def make_requests():
    return [{"line": random.randrange(LINES), "context": random.randrange(4),
             "write": random.getrandbits(1), "payload": number} for number in range(COUNT)]


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(stall=[0.0, 0.4])
async def judges_as_golden(dut, stall):
    await start(dut)
    # What a reset finds under way is gone.
    source = StreamSource(dut, "i")
    source.send(make_requests())
    await cycles(dut, 20)
    source.stop()
    await reset(dut)
    windows, requests = make_windows(), make_requests()
    set_windows(dut, windows)
    sink = StreamSink(dut, "o", stall_probability=stall)
    StreamSource(dut, "i", idle_probability=stall).send(requests)
    got = await sink.receive(COUNT)
    golden = Guard(windows)
    reasons = [golden.check(item["context"], item["line"] * 64, write=bool(item["write"]))
               for item in requests]
    assert got == [{**item, "reason": int(reason)}
                   for item, reason in zip(requests, reasons, strict=True)]
    await cycles(dut, 2)
    first = golden.first
    assert int(dut.is_logged.value) == 1
    assert unpack(port_of("logged"), dut.logged.value.to_unsigned()) == {
        "reason": int(first.reason), "context": first.context, "line": first.address // 64,
        "write": int(first.write)}
