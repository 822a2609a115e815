"""What the benches of copies share: a scene on the unit."""

import random

from golden.streaming.chain import DESCRIPTOR_BYTES, pack_descriptor
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import arguments, cycles
from tests.hw.streaming.copies import Scene, fields
from tests.rtl.streaming_copy.scenes import CHAINS, CONFIGS, SIZE, window_bits


class CopyBench:
    """Sources, sinks and expectations of one run after a reset.

    Some commands come as such, the others in chains; those of each kind end in order.
    """

    def __init__(self, dut, *, stall=0.0, **faults):
        self.dut = dut
        self.config = CONFIGS[arguments()["config"]]
        self.stall = stall
        self.rng = random.Random(random.getrandbits(64))
        self.scene = Scene(self.config, self.rng, self.rng.randbytes(SIZE), **faults)
        self.chains = bytearray(SIZE)
        self.free = 0
        self.doorbells = []
        self.resident, self.chained = [], []   # indices of the scene's commands

    @property
    def contents(self):
        """The memory before anything runs."""
        return self.scene.initial + bytes(self.chains)

    @property
    def expected(self):
        """The memory when all is done."""
        return bytes(self.scene.memory) + bytes(self.chains)

    def add(self, count, *, share_bad=0.2, make=None):
        """Add random commands that come as such."""
        for _ in range(count):
            self.resident.append(len(self.scene.commands))
            self._add_command(share_bad, make)

    def add_chain(self, count, *, share_bad=0.2, make=None):
        """Add random commands that come as a chain, parts of which lie elsewhere."""
        first = len(self.scene.commands)
        for _ in range(count):
            self._add_command(share_bad, make)
        places = []
        for _ in range(count):
            self.free += DESCRIPTOR_BYTES * self.rng.choice([1, 1, 1, 3])
            places.append(self.free)
        for index, place in enumerate(places):
            following = places[index + 1] if index + 1 < count else None
            packed = pack_descriptor(
                self.scene.commands[first + index], fence=self.rng.random() < 0.2,
                following=None if following is None else CHAINS + following)
            self.chains[place:place + DESCRIPTOR_BYTES] = packed
        self.doorbells.append({"address": CHAINS + places[0], "limit": count, "tag": 0})
        self.chained += range(first, first + count)

    def _add_command(self, share_bad, make):
        if self.rng.random() < share_bad:
            self.scene.bad()
        elif make is not None:
            make(self.scene)
        else:
            self.scene.random()

    def connect(self):
        self.dut.windows.value = window_bits(self.config, self.scene.windows)
        self.sources = {name: StreamSource(self.dut, name, idle_probability=self.stall)
                        for name in ("i_command", "i_chain")}
        self.sinks = {name: StreamSink(self.dut, name, stall_probability=self.stall)
                      for name in ("o_done", "o_feed")}
        self.monitors = [StreamMonitor(self.dut, name) for name in self.sinks]

    def stop(self):
        """Leave all ports alone, for a reset in mid-stream."""
        for part in (*self.sources.values(), *self.sinks.values(), *self.monitors):
            part.stop()

    def send(self):
        commands = self.scene.commands
        self.sources["i_command"].send([fields(commands[index]) for index in self.resident])
        self.sources["i_chain"].send(self.doorbells)

    async def run(self):
        """Send all, wait for all that must come, and compare."""
        self.send()
        done = await self.sinks["o_done"].receive(len(self.scene.commands))
        await cycles(self.dut, 40)
        assert not self.dut.busy.value
        assert len(done) == len(self.scene.commands)
        self._compare_order(done)

    def _compare_order(self, done):
        """Messages are those of both kinds, merged; frames come in the order of messages."""
        want = self.scene.done()
        queues = [list(self.resident), list(self.chained)]
        paths = {(0, 0): []}   # how many of each kind came, and the frames so far
        frames = self._frames()
        for item in done:
            after = {}
            for counts, fed in paths.items():
                for kind in (0, 1):
                    if counts[kind] < len(queues[kind]):
                        index = queues[kind][counts[kind]]
                        feed = self.scene.results[index].feed
                        if want[index] == item and (feed is None or (
                                len(fed) < len(frames) and frames[len(fed)] == feed)):
                            new = (counts[0] + (kind == 0), counts[1] + (kind == 1))
                            after[new] = [*fed, feed] if feed is not None else fed
            assert after, f"no command ends with {item} after {max(paths)}"
            paths = after
        assert all(len(fed) == len(frames) for fed in paths.values())

    def _frames(self):
        frames, current = [], bytearray()
        for beat in self.sinks["o_feed"].items:
            size = beat["keep"].bit_count()
            assert beat["keep"] == (1 << size) - 1
            assert size == self.config.bus_bytes or beat["last"]
            current += beat["data"].to_bytes(self.config.bus_bytes, "little")[:size]
            if beat["last"]:
                frames.append(bytes(current))
                current.clear()
        assert not current
        return frames
