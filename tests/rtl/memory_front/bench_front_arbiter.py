"""Every request passes once, in its source's order, and all sources progress."""

import random

import cocotb

from hw.memory.layouts import MetaAction, Operation
from sim.stream import StreamSink, StreamSource
from sim.testbench import cycles, start

COUNT = 3
BOUND = 4


def make_request(source, number):
    return {
        "line": random.getrandbits(46), "context": random.getrandbits(8), "qos": 5 * source,
        "source": source, "tag": number, "operation": random.choice(list(Operation)).value,
        "meta_action": random.choice(list(MetaAction)).value, "meta": random.getrandbits(2),
        "poison": random.getrandbits(1), "enables": random.getrandbits(64),
        "data": random.getrandbits(512)}


async def run(dut, idle, stall):
    """Send 50 requests of each source. Returns the sources in order."""
    await start(dut)
    sink = StreamSink(dut, "o", stall_probability=stall)
    sent = [[make_request(source, number) for number in range(50)] for source in range(COUNT)]
    for source in range(COUNT):
        StreamSource(dut, f"i_{source}", idle_probability=idle).send(sent[source])
    got = await sink.receive(COUNT * 50)
    await cycles(dut, 20)
    for source in range(COUNT):
        assert [item for item in got if item["source"] == source] == sent[source]
    return [item["source"] for item in got]


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(idle=[0.0, 0.4], stall=[0.0, 0.4])
async def passes_each_once(dut, idle, stall):
    await run(dut, idle, stall)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def none_starves(dut):
    order = await run(dut, 0.0, 0.0)
    places = [index for index, source in enumerate(order) if source == 0]
    gaps = [after - before - 1 for before, after in zip(places, places[1:], strict=False)]
    assert max(gaps) <= BOUND + COUNT - 2
