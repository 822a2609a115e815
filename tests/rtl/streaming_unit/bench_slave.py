"""Jobs on a memory that is not ours."""

import random

import cocotb
from cocotbext.axi import AxiBus, AxiRam

from sim.stream import StreamMonitor
from sim.testbench import cycles
from tests.rtl.streaming_unit.scenes import MEMORY_BYTES, make_prompt
from tests.rtl.streaming_unit.surroundings import SEED, Scene


class Slave:
    """cocotbext-axi's memory behind the interface of `sim.memory_control.MemoryControl`."""

    def __init__(self, dut):
        self.dut = dut

    def configure(self, **_):
        self.ram = AxiRam(AxiBus.from_prefix(self.dut, "m_axi"), self.dut.clk, self.dut.rst,
                          size=MEMORY_BYTES)
        rng = random.Random(SEED)
        for side in (self.ram.write_if, self.ram.read_if):
            side.log.setLevel("WARNING")
        for channel in (self.ram.write_if.aw_channel, self.ram.write_if.w_channel,
                        self.ram.write_if.b_channel, self.ram.read_if.ar_channel,
                        self.ram.read_if.r_channel):
            channel.set_pause_generator(_pauses(rng.random() * 0.7, rng.getrandbits(32)))
        for channel in ("aw", "w", "ar"):
            StreamMonitor(self.dut, f"m_axi_{channel}")

    async def load(self, contents):
        self.ram.write(0, bytes(contents))

    async def dump(self):
        await cycles(self.dut, 1)
        return self.ram.read(0, MEMORY_BYTES)

    def check(self):
        """The monitors check as it runs."""


def _pauses(share, seed):
    rng = random.Random(seed)
    while True:
        yield rng.random() < share


@cocotb.test
async def jobs_on_an_independent_slave(dut):
    scene = Scene(dut, stall=0.2, memory=Slave(dut))
    await scene.start()
    for number in range(2):
        prompt = make_prompt(scene.config, SEED + number)
        await scene.load(prompt)
        end = await scene.run(prompt)
        assert (end["code"], end["id"]) == (0, 0)
        assert await scene.check(prompt)
