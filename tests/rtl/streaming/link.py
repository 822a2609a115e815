"""The surroundings of a receive path: link, chunk table, and a judge of all that comes out."""

import itertools
import random

from cocotb.triggers import Event
from cocotbext.axi import AxiStreamBus, AxiStreamSource

from golden.streaming.errors import Reason, Rejected
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import reset
from tests.hw.streaming.frames import header_of
from tests.hw.streaming.payloads import stored_beats


class Judge:
    """Compares each packet's rows and verdict with what golden makes of it.

    Rows that come before the verdict of a packet whose header passes must be the packet's; if it
    is accepted, all of them. Other verdicts may come anywhere between rows.
    """

    def __init__(self, config, awaited):
        self.config = config
        self.awaited = awaited
        self.packets = []
        self.reasons = []
        self._beats = []
        self._judged = Event()

    def take_row(self, beat):
        self._beats.append(beat)

    def take_verdict(self, verdict):
        packet = self.packets[len(self.reasons)]
        outcome = self.awaited.decode(packet)
        reason = outcome.reason if isinstance(outcome, Rejected) else Reason.NONE
        found = Reason(verdict["reason"])
        assert found == reason, f"packet {len(self.reasons)}: {reason!r}, not {found!r}"
        header = header_of(packet)
        if header is not None and not Reason.MAGIC <= reason <= Reason.LENGTH:
            index, chunk = self.awaited.chunks[header.chunk_id]
            assert (verdict["known"], verdict["index"]) == (1, index)
            if reason == Reason.NONE:
                assert self._beats == stored_beats(self.config, outcome.rows, outcome.exponents)
            assert len(self._beats) % self.config.row_beats == 0
            assert len(self._beats) <= 2 * chunk.tokens * self.config.row_beats
            self._beats.clear()
        self.reasons.append(reason)
        self._judged.set()

    async def judged(self, count):
        """Wait for ``count`` verdicts in all."""
        while len(self.reasons) < count:
            self._judged.clear()
            await self._judged.wait()


class Link:
    """Sends packets, and answers lookups.

    Parameters
    ----------
    dut : handle
    config : StreamingConfig
    awaited : Awaited
    idle, stall : float
        Share of the cycles in which the link has no beat, and an output is not taken.
    """

    def __init__(self, dut, config, awaited, *, idle=0.0, stall=0.0):
        self.dut = dut
        self.config = config
        self.awaited = awaited
        self.idle = idle
        self.stall = stall
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.source.log.setLevel("WARNING")
        if idle:
            pauses = random.Random(random.getrandbits(64))
            self.source.set_pause_generator(pauses.random() < idle for _ in itertools.count())
        self._connect()

    def _connect(self):
        self.judge = judge = Judge(self.config, self.awaited)
        self.answers = StreamSource(self.dut, "i_expected", idle_probability=self.idle)
        self.lookups = self._take("o_lookup", self.answer)
        self.stored = self._take("o_stored", judge.take_row)
        self.verdicts = self._take("o_verdict", judge.take_verdict)
        self.monitors = [StreamMonitor(self.dut, name)
                         for name in ("o_lookup", "o_stored", "o_verdict")]

    def _take(self, name, on_item):
        return StreamSink(self.dut, name, stall_probability=self.stall, on_item=on_item)

    def answer(self, chunk_id):
        self.answers.send([self.awaited.answer(chunk_id)])

    def send(self, packets):
        """Send packets that are not empty, one after the other without a gap."""
        for packet in packets:
            self.judge.packets.append(bytes(packet))
            self.source.send_nowait(packet)

    async def reset(self):
        """Reset the unit, and forget what was sent."""
        for part in (self.answers, self.lookups, self.stored, self.verdicts, *self.monitors):
            part.stop()
        self.source.clear()
        await reset(self.dut)
        self._connect()
