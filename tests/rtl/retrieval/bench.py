"""What the benches of the retrieval share: a scene on the unit."""

import random

from sim.memory_control import MemoryControl
from sim.scoreboard import Scoreboard
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import arguments, cycles, start
from tests.retrieval_scenes import Scene, plain_counts, plain_item
from tests.rtl.retrieval.systems import CONFIGS

OUTPUTS = ("o_job", "o_token", "o_counts")


class RetrievalBench:
    """Codes loaded, sources, sinks and expectations of one run after a reset."""

    def __init__(self, dut, *, stall=0.0):
        self.dut = dut
        self.stall = stall
        self.config = CONFIGS[arguments()["config"]]
        self.streamed = self.config.code_source == "streamed"
        self.scene = Scene(self.config, seed=random.randrange(1 << 30))
        self.boards = {name: Scoreboard(name) for name in OUTPUTS}
        self.control = MemoryControl(dut) if self.streamed else None

    async def start(self, *, tokens, distinct_codes=None, **memory_settings):
        """Reset, and load contexts of these lengths."""
        for length in tokens:
            self.scene.add_context(length, distinct_codes=distinct_codes)
        await start(self.dut)
        if self.streamed:
            self.control.configure(**memory_settings)
            await self.control.load(self.scene.memory_image())
        else:
            writes = StreamSource(self.dut, "i_code", idle_probability=self.stall)
            writes.send(self.scene.code_writes())
            await writes.drained()
            await cycles(self.dut, 2)
        plain = {"o_job": lambda job: job["tag"], "o_token": plain_item, "o_counts": plain_counts}
        self.source = StreamSource(self.dut, "i", idle_probability=self.stall)
        self.sinks = {
            name: StreamSink(self.dut, name, stall_probability=self.stall,
                             on_item=lambda item, name=name: self.boards[name].check(
                                 plain[name](item)))
            for name in OUTPUTS}
        self.monitors = [StreamMonitor(self.dut, name) for name in OUTPUTS]
        self.taken = StreamMonitor(self.dut, "i")

    def ask(self, queries):
        """Send queries, and expect what golden finds."""
        for query in queries:
            tokens, counts = self.scene.expected(query)
            self.boards["o_job"].expect([query["job"]["tag"]])
            self.boards["o_token"].expect(tokens)
            self.boards["o_counts"].expect([counts])
        self.source.send(queries)

    def expect_failure(self, query, error):
        """Send a query whose codes can not be read: nothing but its END comes."""
        self.boards["o_job"].expect([query["job"]["tag"]])
        self.boards["o_token"].expect([{"kind": 3}])
        self.boards["o_counts"].expect([{"error": error, "full": 0, "coarse": 0, "summaries": 0}])
        self.source.send([query])

    async def finish(self):
        """Wait for all that must come, then for silence, and compare the numbers of items."""
        for name, board in self.boards.items():
            await self.sinks[name].receive(board.compared + board.outstanding)
        await cycles(self.dut, 40)
        for board in self.boards.values():
            board.drain()
        assert not self.dut.matching.value
        assert not self.dut.scanning.value
        if self.streamed:
            self.control.check()

    def stop(self):
        """Leave the ports alone, for a reset."""
        for driver in (self.source, *self.sinks.values(), *self.monitors, self.taken):
            driver.stop()
