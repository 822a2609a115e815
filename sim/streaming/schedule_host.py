"""Link, device and host around a route scheduler."""

import random
from collections import deque

from cocotb import start_soon
from cocotb.simtime import get_sim_time
from cocotb.triggers import Event, FallingEdge, RisingEdge, Timer

from golden.streaming.policy import Route
from sim.payload import pack
from sim.stream import StreamPort, StreamSink, StreamSource
from sim.testbench import CLOCK_NS, cycles, port_of

__all__ = ["Surroundings"]

LINK, COMPUTE = Route


class Taker:
    """Takes items with stalls, or none; sleeps while there are none. ``valid`` may fall."""

    def __init__(self, dut, name, on_item):
        self.port = StreamPort(dut, name)
        self.on_item = on_item
        self.stall = 0.0
        self.is_dead = False
        self._revived = Event()
        self._random = random.Random(random.getrandbits(64))
        start_soon(self._take())

    def set(self, stall, is_dead=False):
        self.stall, self.is_dead = stall, is_dead
        if not is_dead:
            self._revived.set()

    async def _take(self):
        port, edge = self.port, RisingEdge(self.port.clk)
        port.ready.value = 0
        while True:
            if not port.valid.value:
                await RisingEdge(port.valid)
            while self.is_dead:
                self._revived.clear()
                await self._revived.wait()
            if self._random.random() < self.stall:
                await edge
                continue
            port.ready.value = 1
            await edge
            if port.valid.value:
                self.on_item(port.unpack(port.read_bits()))
            port.ready.value = 0
            await edge


class Answers:
    """Offers the answers of a route; one that is withdrawn is not offered any more."""

    def __init__(self, dut, name):
        self.port = StreamPort(dut, name)
        self.queue = deque()
        self.on_taken = lambda answer: None
        self._filled = Event()
        self.port.valid.value = 0
        start_soon(self._drive())

    def send(self, answer):
        self.queue.append(answer)
        self._filled.set()

    def withdraw(self, chunk=None):
        """Forget the answers for a chunk, or all."""
        self.queue = deque(answer for answer in self.queue
                           if chunk is not None and answer["chunk"] != chunk)
        self.port.valid.value = 0

    async def _drive(self):
        port, edge = self.port, RisingEdge(self.port.clk)
        while True:
            if not self.queue:
                port.valid.value = 0
                self._filled.clear()
                await self._filled.wait()
                continue
            answer = self.queue[0]
            port.write(answer)
            port.valid.value = 1
            await edge
            if port.ready.value and self.queue and self.queue[0] is answer:
                self.queue.popleft()
                port.valid.value = 0
                self.on_taken(answer)


class Surroundings:
    """Runs one job after the other, and compares each with golden.

    ``violations`` of what must hold at the ports fail a job at its end: a chunk that is computed
    while a request for it on the link has neither ended nor been given up.
    """

    def __init__(self, dut):
        self.dut = dut
        self.entries = StreamSource(dut, "i_entry", idle_probability=0.2)
        self.events = StreamSink(dut, "o_event")
        self.takers = {
            "o_link": Taker(dut, "o_link", lambda chunk: self._request(LINK, chunk)),
            "o_compute": Taker(dut, "o_compute",
                               lambda request: self._request(COMPUTE, request["chunk"])),
            "o_cancel": Taker(dut, "o_cancel", self._cancel),
            "o_record": Taker(dut, "o_record", lambda record: self.log.append(record)),
        }
        self.answers = [Answers(dut, "i_link"), Answers(dut, "i_computed")]
        self.answers[LINK].on_taken = lambda answer: self.on_link.discard(answer["chunk"])
        self.log, self.requests = [], []
        self.on_link = set()     # taken from the scheduler, neither answered nor given up
        self.cancelled = []
        self.violations = []
        self._world = None
        self._coming = []
        self.policy_shape = port_of("policy")

    def set_stalls(self, stall, **dead):
        for name, taker in self.takers.items():
            taker.set(stall, dead.get(name, False))

    def _request(self, route, chunk):
        self.requests.append((route, chunk))
        if route == LINK:
            if chunk in self.on_link:
                self.violations.append(f"chunk {chunk} is requested twice")
            self.on_link.add(chunk)
        elif chunk in self.on_link:
            self.violations.append(f"chunk {chunk} is computed while the link may write it")
        if self._world is None:
            return
        for time, good in self._world.request(self.now, route, chunk):
            answer = {"chunk": chunk, "good": good}
            self._coming.append((route, chunk, start_soon(self._answer(time, route, answer))))

    @property
    def now(self):
        return self.dut.now.value.to_unsigned()

    async def _answer(self, time, route, answer):
        wait = (time << self._tick_log2) - (self._cycle - self._begun)
        if wait > 0:
            await Timer(wait * CLOCK_NS, "ns")
        self.answers[route].send(answer)

    @property
    def _cycle(self):
        return int(get_sim_time("ns")) // CLOCK_NS

    def _cancel(self, chunk):
        """The receive side gives the chunk up: nothing of it comes any more."""
        self.on_link.discard(chunk)
        self.cancelled.append(chunk)
        if self.cancelled.count(chunk) > self.requests.count((LINK, chunk)):
            self.violations.append(f"chunk {chunk} is given up, but was not requested")
        self._forget(LINK, chunk)

    def _forget(self, route, chunk=None):
        kept = []
        for other, its_chunk, task in self._coming:
            if other == route and chunk in (None, its_chunk):
                task.cancel()
            else:
                kept.append((other, its_chunk, task))
        self._coming = kept
        self.answers[route].withdraw(chunk)

    async def load(self, fields, entries, world=None, tick_log2=0):
        """Load a job and start it."""
        dut = self.dut
        self._world, self._tick_log2 = world, tick_log2
        await self._until(dut.loading)
        self.log.clear()
        self.events.items.clear()
        for items in (self.requests, self.cancelled, self.on_link):
            items.clear()
        dut.policy.value = pack(self.policy_shape, fields)
        dut.tick_log2.value = tick_log2
        self.entries.send(entries)
        await self.entries.drained()
        await self._until(dut.loading)
        dut.start.value = 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        self._begun = self._cycle + 1

    async def _until(self, signal):
        if not signal.value:
            await RisingEdge(signal)
        await RisingEdge(self.dut.clk)

    async def ended(self):
        """Wait until the scheduler is not busy, and nothing comes any more."""
        dut = self.dut
        await cycles(dut, 2)
        if dut.busy.value:
            await FallingEdge(dut.busy)
        self.set_stalls(0.0)
        for route in Route:
            self._forget(route)
        await cycles(dut, 60)

    async def run(self, job, world, tick_log2):
        """Run a job to its end; returns golden's scheduler after the same events."""
        await self.load(job.policy_fields(), job.entries(random), world, tick_log2)
        await self.ended()
        dut = self.dut
        assert dut.finished.value and not dut.error.value
        golden = job.check(self.events.items, self.log)
        assert golden.finished
        assert not self.violations, self.violations
        return golden

    async def abort(self):
        self.dut.abort.value = 1
        for route in Route:
            self._forget(route)
        await RisingEdge(self.dut.clk)
        self.dut.abort.value = 0
        self._world = None
        for route in Route:
            self._forget(route)
