"""Fetch from a slave that is not ours."""

import random

import cocotb
from cocotbext.axi import AxiRamRead, AxiReadBus

from sim.testbench import start
from tests.rtl.fetch.bench import FetchBench
from tests.rtl.fetch.scenes import SIZE


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def rows_of_every_class(dut, stall):
    bench = FetchBench(dut, stall=stall)
    await start(dut)
    ram = AxiRamRead(AxiReadBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=SIZE)
    ram.write(0, bench.scene.memory)
    pauses = random.Random(random.getrandbits(32))

    def pause():
        while True:
            yield pauses.random() < stall

    ram.r_channel.set_pause_generator(pause())
    ram.ar_channel.set_pause_generator(pause())
    await bench.connect()
    for query in range(15):
        bench.scene.add_query(random.randrange(20), slot=query % 4, context=query % 2,
                              logits_only=int(query % 3 == 0))
    await bench.run()
