"""What the benches of the page writer share: a scene on the unit."""

import random

from sim.payload import pack
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import arguments, sidecar
from tests.rtl.streaming_writer.scenes import CONFIGS, SIZE
from tests.writer_system import WriterScene


class WriterBench:
    """Sources, sinks and expectations of one run after a reset."""

    def __init__(self, dut, *, stall=0.0):
        self.dut = dut
        self.config = CONFIGS[arguments()["config"]]
        self.contents = random.randbytes(SIZE)
        self.scene = WriterScene(self.config, self.contents, seed=random.randrange(1 << 30))
        self.stall = stall

    def connect(self):
        """Connect to the streams."""
        names = ("i_entry", "i_placement", "i", "other_aw", "other_w")
        self.sources = {name: StreamSource(self.dut, name, idle_probability=self.stall)
                        for name in names}
        self.sinks = {name: StreamSink(self.dut, name, stall_probability=self.stall)
                      for name in ("o_done", "other_b")}
        self.monitors = [StreamMonitor(self.dut, name) for name in self.sinks]
        shape = next(port for port in sidecar()["ports"] if port["name"] == "windows")
        self.dut.windows.value = pack(shape, self.scene.window_values)

    def stop(self):
        """Leave the streams alone, for a reset."""
        for part in (*self.sources.values(), *self.sinks.values(), *self.monitors):
            part.stop()

    def send(self):
        """Send all of the scene."""
        scene = self.scene
        for name, items in (
            ("i_entry", scene.table_writes), ("i_placement", scene.placements), ("i", scene.items),
            ("other_aw", scene.other_requests), ("other_w", scene.other_beats),
        ):
            self.sources[name].send(items)

    async def run(self):
        """Send all, wait for the outcomes, and compare them."""
        scene = self.scene
        self.send()
        await self.sinks["o_done"].receive(len(scene.done))
        await self.sinks["other_b"].receive(len(scene.other_requests))
        assert self.sinks["o_done"].items == scene.done
        assert [item["response"] for item in self.sinks["other_b"].items] == [0] * len(
            scene.other_requests)
