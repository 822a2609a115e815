"""A buffer passes every item on, in order: Queue and SkidBuffer."""

import random

import cocotb

from sim.scoreboard import Scoreboard
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import arguments, cycles, start


def make_items(count):
    return [{"tag": random.randrange(16), "value": [random.randrange(-4, 4) for _ in range(2)]}
            for _ in range(count)]


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(idle=[0.0, 0.3, 0.7], stall=[0.0, 0.3, 0.7])
async def keeps_order(dut, idle, stall):
    items = make_items(200)
    scoreboard = Scoreboard("o")
    scoreboard.expect(items)
    await start(dut)
    StreamMonitor(dut, "o", on_item=scoreboard.check)
    sink = StreamSink(dut, "o", stall_probability=stall)
    source = StreamSource(dut, "i", idle_probability=idle)
    source.send(items)
    await sink.receive(len(items))
    await cycles(dut, 20)
    scoreboard.drain()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def passes_one_item_per_cycle(dut):
    await start(dut)
    sink = StreamSink(dut, "o")
    source = StreamSource(dut, "i")
    source.send(make_items(100))
    await sink.receive(100)
    assert sink.times == list(range(sink.times[0], sink.times[0] + 100))


@cocotb.test(timeout_time=100, timeout_unit="us")
async def fills_up_to_its_capacity(dut):
    await start(dut)
    dut.o_ready.value = 0
    source = StreamSource(dut, "i")
    source.send(make_items(50))
    await cycles(dut, 60)
    assert source.sent == arguments()["capacity"]
