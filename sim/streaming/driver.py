"""Drives the streaming engine's ports under cocotb: registers, link, computing, reports."""

import random
import warnings
from collections import deque

from cocotb import start_soon
from cocotb.simtime import get_sim_time
from cocotb.triggers import Event, RisingEdge

from hw.streaming.register_map import COUNTERS, address_of
from sim.payload import unpack
from sim.register_driver import RegisterDriver
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import CLOCK_NS, cycles, port_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from cocotbext.axi import AxiStreamBus, AxiStreamSource

__all__ = ["DECISION", "FRAME", "COPY", "JOB", "StreamingDriver"]

DECISION, FRAME, COPY, JOB = range(4)
ALL_REPORTS = (1 << 21) - 1


class StreamingDriver(RegisterDriver):
    """Speaks the engine's protocol.

    Parameters
    ----------
    dut : handle
        The engine, or what surrounds it and has its ports.
    config : StreamingConfig
    stall_probability : float
        Share of stalled cycles on each stream out of the engine, and of idle ones on the link.
    seed : int
    """

    def __init__(self, dut, config, *, stall_probability=0.0, seed=1):
        super().__init__(dut, address_of)
        self.config = config
        self.stall_probability = stall_probability
        self.rng = random.Random(seed)
        self.link = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.link.log.setLevel("WARNING")
        if stall_probability:
            self.link.set_pause_generator(self._pauses())
        stall = {"stall_probability": stall_probability}
        self.command = StreamSource(dut, "i_command", idle_probability=stall_probability)
        self.computed = StreamSource(dut, "i_computed", idle_probability=stall_probability)
        self.reports = []
        self.requests, self.orders, self.events = deque(), deque(), []
        self._news = Event()
        self.sinks = [
            StreamSink(dut, "o_report", on_item=self._on(self.reports), **stall),
            StreamSink(dut, "o_request", on_item=self._on(self.requests), **stall),
            StreamSink(dut, "o_compute", on_item=self._on(self.orders), **stall),
        ]
        self._streams = [self.command, self.computed, *self.sinks]
        if stall_probability:  # without stalls there is nothing to hold
            self._streams += [StreamMonitor(dut, name)
                              for name in ("o_report", "o_request", "o_compute")]
        self._watch = start_soon(self._watch_events())

    def stop(self):
        """Let go of the streams, before a reset."""
        for stream in self._streams:
            stream.stop()
        self.link.clear()
        self._watch.cancel()

    @staticmethod
    def cycle():
        """Cycles since the start of the simulation."""
        return int(get_sim_time("ns")) // CLOCK_NS

    def _pauses(self):
        while True:
            yield self.rng.random() < self.stall_probability

    def _on(self, items):
        def take(item):
            items.append(item)
            self._news.set()
        return take

    async def news(self):
        """Wait until something more has come out of the engine."""
        self._news.clear()
        await self._news.wait()

    async def _watch_events(self):
        port = port_of("route_event")
        while True:
            await RisingEdge(self.dut.clk)
            word = self.dut.route_event.value
            if word.is_resolvable and (bits := word.to_unsigned()) & 1:
                self.events.append(unpack(port, bits))

    # Registers.

    async def grant(self, index, window):
        await self.write("window_index", index)
        await self.write_address("window_base", window.base)
        await self.write_address("window_last", window.last)
        await self.write("window_enter", int(window.valid))

    async def read_counters(self):
        """All counters, and in ``now`` the cycle in which that of idle cycles was read: the others
        stand still while the engine has nothing to do."""
        values = {}
        for name, _ in COUNTERS:
            values[name] = await self.read(name)
            if name == "cycles_idle":
                values["now"] = self.cycle()
        return values

    async def count(self, kind, code):
        """How often an event was reported."""
        await self.write("event_index", kind << 5 | code)
        return await self.read("event_count")

    # Jobs.

    async def load(self, prompt):
        """Set the registers of a job, the block table and the windows."""
        await self.write("report_mask", ALL_REPORTS)
        await self.enter_pages(0, prompt.table)
        for index, window in enumerate(prompt.windows):
            await self.grant(index, window)
        for name, value in prompt.registers().items():
            if name in ("records", "schedule"):
                await self.write_address(name, value)
            else:
                await self.write(name, value)

    async def job_end(self):
        """Wait for the report of the end of a job, and return it."""
        seen = 0
        while True:
            for report in self.reports[seen:]:
                seen += 1
                if report["kind"] == JOB:
                    return report
            if seen == len(self.reports):
                await self.news()

    async def serve_link(self, prompt, behave):
        """Send the frame of each chunk that is asked for, one behind the other.

        ``behave(chunk, frame)`` returns what is sent in its place: a list of (cycles to wait,
        bytes).
        """
        while True:
            while not self.requests:
                await self.news()
            chunk = (self.requests.popleft() - prompt.first_id) % (1 << 32)
            for wait, frame in behave(chunk, prompt.frame(chunk)):
                if wait:
                    await cycles(self.dut, wait)
                await self.link.send(frame)

    async def serve_compute(self, prompt, behave):
        """End the computation of each chunk that is asked for, one after the other.

        ``behave(chunk, state_only)`` returns a list of (cycles to wait, good).
        """
        while True:
            while not self.orders:
                await self.news()
            order = self.orders.popleft()
            chunk = (order["chunk_id"] - prompt.first_id) % (1 << 32)
            for wait, good in behave(chunk, order["state_only"]):
                await cycles(self.dut, max(1, wait))
                self.computed.send([{"chunk_id": order["chunk_id"], "good": int(good)}])
