"""What the benches of fetch share: a scene on the unit."""

import random

from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import arguments, cycles
from tests.fetch_system import Scene, plain
from tests.rtl.fetch.scenes import CONFIGS, SIZE


class FetchBench:
    """Sources, sinks and expectations of one run after a reset."""

    def __init__(self, dut, *, stall=0.0):
        self.dut = dut
        self.config = CONFIGS[arguments()["config"]]
        self.scene = Scene(self.config, seed=random.randrange(1 << 30), size=SIZE)
        self.stall = stall

    async def connect(self):
        """Connect to the streams, and fill the block table."""
        self.sources = {name: StreamSource(self.dut, name, idle_probability=self.stall)
                        for name in ("i_entry", "i_job", "i_token")}
        self.sinks = {name: StreamSink(self.dut, name, stall_probability=self.stall)
                      for name in ("o_key", "o_value", "o_status")}
        for name in self.sinks:
            StreamMonitor(self.dut, name)
        self.sources["i_entry"].send(self.scene.table_writes)

    async def run(self):
        """Send the scene's queries, wait for all that must come, and compare."""
        scene = self.scene
        expected = {"o_key": scene.keys, "o_value": scene.values, "o_status": scene.statuses}
        self.sources["i_job"].send(plain(scene.jobs))
        self.sources["i_token"].send(plain(scene.tokens))
        for name, items in expected.items():
            await self.sinks[name].receive(len(items))
        await cycles(self.dut, 30)
        assert self.sinks["o_status"].items == plain(scene.statuses)
        for name in ("o_key", "o_value"):
            assert scene.matches(plain(expected[name]), self.sinks[name].items), f"{name} differs"
