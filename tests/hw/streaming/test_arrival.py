"""Chunks from their requests into memory, with golden frames, faults, and requests given up."""

import random
from collections import Counter, deque
from dataclasses import dataclass, replace

import pytest

from golden.streaming.chunks import Grid
from golden.streaming.errors import Reason as Golden
from golden.streaming.layout import Format
from golden.streaming.wire import Decoded, decode_frame, encode_frame
from hw.config import StreamingConfig
from hw.streaming.arrival import Arrival
from hw.streaming.layouts import Outcome, Reason
from tests.hw.harness import plain, run_testbench
from tests.hw.memory_model import SLVERR, Fault, MemoryModel
from tests.hw.streaming.frames import header_of, link_beats
from tests.rtl.streaming_unit.scenes import make_prompt

SIZE = 1 << 16
MASK_AT = 48   # of ``window_mask`` in a record
DAMAGES = ("none", "none", "none", "none", "payload", "header", "cut", "longer", "place", "twice",
           "strangers")


def make_config(bus_bytes=16, **fields):
    return StreamingConfig(**{
        "head_dim": 32, "bus_bytes": bus_bytes, "formats": ("INT8", "MXINT8", "BF16"),
        "chunk_tokens": 48, "chunks": 16, "table_pages": 32, "windows": 2, "outstanding": 3,
        "bursts": 8, "address_bits": 20, **fields})


@dataclass(eq=False)
class Packet:
    """A packet on the link. Its ``reason`` is known when it has been looked up."""

    frame: bytes
    chunk: int | None
    reason: Reason | None = None


class Scene:
    """A prompt whose chunks are requested again and again, and given up now and then.

    Parameters
    ----------
    config : StreamingConfig
    seed : int
    requests : int
        In all.
    stall, cancel, abort : float
        Share of cycles in which each port stalls, a chunk is given up, all are.
    """

    def __init__(self, config, *, seed, requests, stall=0.0, cancel=0.0, abort=0.0):
        self.config, self.seed = config, seed
        self.stall, self.cancel, self.abort = stall, cancel, abort
        self.rng = rng = random.Random(seed)
        self.left = requests
        self.prompt = make_prompt(config, seed, grid=Grid(blocks=3, layers=2, heads=2),
                                  tokens=rng.choice([1, 17, 18]))
        self.first_id, self.count = self.prompt.first_id, self.prompt.grid.count
        self.formats = {Format[name] for name in config.formats}
        self.memory = MemoryModel(size=SIZE, seed=seed, shuffle=stall > 0)
        self.memory.data[:] = self.image = self.prompt.image(SIZE, rng)
        self.plans = [self.prompt.write(bytearray(SIZE), chunk).bursts
                      for chunk in range(self.count)]
        self._break_chunks()
        self.dut = Arrival(config)
        self.asked = set()                     # requests without an answer
        self.judged = {}                       # by chunk: the reason of the frame that took it
        self.settled = {}                      # by chunk: what its pages held when it was over
        self.lookups, self.verdicts, self.beats = deque(), deque(), deque()
        self.met = Counter()

    def _break_chunks(self):
        """One may not be written anywhere; of another a burst fails."""
        self.withheld, self.failing = self.rng.sample(range(self.count), 2)
        at = self.prompt.records_base + 64 * self.withheld + MASK_AT
        self.image[at:at + 2] = self.memory.data[at:at + 2] = bytes(2)
        burst = self.rng.choice(self.plans[self.failing])
        self.memory.write_faults = [Fault(burst.address, burst.address + 1, response=SLVERR)]

    def run(self):
        print(f"scene: seed={self.seed} stall={self.stall} cancel={self.cancel}")
        run_testbench(self.dut, self._testbench, timeout_cycles=60_000, beside=[
            self.memory.serve_read_port(self.dut.read),
            self.memory.serve_write_port(self.dut.write)])
        assert not self.lookups
        assert not [packet for packet in self.verdicts if packet.reason != Reason.NONE]
        for chunk, contents in self.settled.items():
            assert self._pages(chunk) == contents
        for chunk in range(self.count):
            self._put(chunk, self.image, self._pages(chunk))
        assert self.memory.data == self.image, "written outside the pages of chunks"
        return self

    async def _testbench(self, ctx):
        self.ctx, dut = ctx, self.dut
        self.ports = {dut.i_link: self._on_beat, dut.i_request: self._on_request,
                      dut.o_request: self._on_sent, dut.o_answer: self._on_answer,
                      dut.i_cancel: self._on_cancel, dut.o_report: self._on_report}
        ctx.set(dut.records, self.prompt.records_base)
        ctx.set(dut.first_id, self.first_id)
        ctx.set(dut.windows[0], self.prompt.windows[0]._asdict())
        ctx.set(dut.i_entry.valid, 1)
        for index, page in enumerate(self.prompt.table):
            ctx.set(dut.i_entry.payload, {"index": index, "page": page})
            await ctx.tick()
        ctx.set(dut.i_entry.valid, 0)
        quiet = 0
        while quiet < 300:   # longer than the rest of a frame takes
            await self._cycle()
            is_quiet = not (self.left or self.asked or self.beats or ctx.get(dut.abort))
            quiet = quiet + 1 if is_quiet else 0
        assert not ctx.get(dut.busy)

    def _happens(self, rate):
        return self.rng.random() < rate

    async def _cycle(self):
        ctx, dut = self.ctx, self.dut
        self._schedule()
        for port in (dut.o_answer, dut.o_request, dut.o_report):
            ctx.set(port.ready, not self._happens(self.stall))
        if self.beats and not self._happens(self.stall):
            ctx.set(dut.i_link.valid, 1)
            ctx.set(dut.i_link.payload, self.beats[0])
        _, _, busy, looked_up, *values = await ctx.tick().sample(dut.busy, dut.looked_up, *(
            value for port in self.ports for value in (port.valid & port.ready, port.payload)))
        if looked_up.valid:
            self._on_lookup(looked_up)
        for number, (port, take) in enumerate(self.ports.items()):
            if values[2 * number]:
                take(plain(values[2 * number + 1]))
                if port in (dut.i_link, dut.i_request, dut.i_cancel):
                    ctx.set(port.valid, 0)
        if ctx.get(dut.abort) and not busy:
            ctx.set(dut.abort, 0)
            for chunk in self.asked:
                self._settle(chunk)
            self.asked.clear()
            self.judged.clear()

    def _schedule(self):
        """Requests, and what is given up."""
        ctx, dut, rng = self.ctx, self.dut, self.rng
        if ctx.get(dut.abort):
            return
        if self._happens(self.abort):
            self.met["abort"] += 1
            ctx.set(dut.abort, 1)
            ctx.set(dut.i_request.valid, 0)
            ctx.set(dut.i_cancel.valid, 0)
            return
        cancelled = ctx.get(dut.i_cancel.payload) if ctx.get(dut.i_cancel.valid) else None
        free = [chunk for chunk in range(self.count)
                if chunk not in self.asked and chunk != cancelled]
        if (self.left and len(self.asked) < self.config.outstanding
                and not ctx.get(dut.i_request.valid)):
            ctx.set(dut.i_request.valid, 1)
            ctx.set(dut.i_request.payload, rng.choice(free))
        if cancelled is None and self.asked and self._happens(self.cancel):
            ctx.set(dut.i_cancel.valid, 1)
            ctx.set(dut.i_cancel.payload, rng.choice(sorted(self.asked)))

    def _on_beat(self, _):
        self.beats.popleft()

    def _on_request(self, chunk):
        if chunk in self.settled:
            assert self._pages(chunk) == self.settled.pop(chunk), "written after its end"
        self.asked.add(chunk)
        self.left -= 1

    def _on_sent(self, chunk_id):
        """The link answers: with one packet or more, of which the first may be damaged."""
        chunk, rng = (chunk_id - self.first_id) % (1 << 32), self.rng
        frame, bus = self.prompt.frame(chunk), self.config.bus_bytes
        damage = rng.choice(DAMAGES)
        damaged = bytearray(frame)
        if damage == "payload":
            damaged[rng.randrange(64, len(frame))] ^= 1 << rng.randrange(8)
        elif damage == "header":
            damaged[rng.randrange(64)] ^= 1 << rng.randrange(8)
        elif damage == "cut":
            damaged = damaged[:rng.randrange(1, len(frame))]
        elif damage == "longer":
            damaged += bytes(rng.choice([1, bus, 5 * bus]))
        elif damage == "place":
            described = replace(self.prompt.chunk(chunk), layer=77)
            damaged = encode_frame(described, self.prompt.formats[chunk], self.prompt.k[chunk],
                                   self.prompt.v[chunk])
        if damage == "strangers":
            described = replace(self.prompt.chunk(chunk), chunk_id=(chunk_id + 16) % (1 << 32))
            self._send(encode_frame(described, self.prompt.formats[chunk], self.prompt.k[chunk],
                                    self.prompt.v[chunk]))
            self._send(rng.randbytes(rng.randrange(1, 200)))
        self._send(bytes(damaged))
        if damage in ("header", "cut", "twice"):
            self._send(frame)

    def _send(self, frame):
        self.beats.extend(link_beats(frame, self.config.bus_bytes))
        outcome = decode_frame(frame, None, self.formats)
        packet = Packet(frame, None)
        if outcome.reason == Golden.CHUNK:
            packet.chunk = (header_of(frame).chunk_id - self.first_id) % (1 << 32)
            self.lookups.append(packet)
        else:
            packet.reason = Reason(outcome.reason.value)
        self.verdicts.append(packet)

    def _on_lookup(self, answer):
        packet = self.lookups.popleft()
        if not answer.awaited:
            packet.reason = Reason.CHUNK
            return
        outcome = decode_frame(packet.frame, self.prompt.chunk(packet.chunk), self.formats)
        packet.reason = (Reason.NONE if isinstance(outcome, Decoded)
                         else Reason(outcome.reason.value))
        self.met["taken", bool(answer.zombie)] += 1
        if not answer.zombie:
            assert packet.chunk in self.asked
            assert packet.chunk not in self.judged
            self.judged[packet.chunk] = packet.reason

    def _on_answer(self, answer):
        chunk = answer["chunk"]
        reason = self.judged.pop(chunk)
        is_good = reason == Reason.NONE and chunk not in (self.withheld, self.failing)
        assert answer["good"] == is_good
        self.asked.remove(chunk)
        self._settle(chunk)
        self.met["answer", is_good] += 1
        if is_good:
            expected = bytearray(SIZE)
            self.prompt.write(expected, chunk)
            assert self._pages(chunk) == self._pages(chunk, expected)

    def _on_cancel(self, chunk):
        self.met["cancel", chunk in self.judged] += 1
        self.asked.discard(chunk)
        self.judged.pop(chunk, None)
        self._settle(chunk)

    def _on_report(self, report):
        outcome, chunk_id = Outcome(report["outcome"]), report["chunk_id"]
        self.met[outcome] += 1
        if outcome != Outcome.REFUSED:
            broken = {Outcome.WINDOW: self.withheld, Outcome.WRITE: self.failing}[outcome]
            assert chunk_id == (self.first_id + broken) % (1 << 32)
            return
        while self.verdicts[0].reason == Reason.NONE:
            self.verdicts.popleft()
        packet = self.verdicts.popleft()
        assert Reason(report["reason"]) == packet.reason
        if packet.chunk is not None:
            assert chunk_id == (self.first_id + packet.chunk) % (1 << 32)
        self.met[packet.reason] += 1

    def _pages(self, chunk, memory=None):
        """What lies where a chunk's bursts go."""
        memory = self.memory.data if memory is None else memory
        return [bytes(memory[burst.address:burst.address + len(burst.contents)])
                for burst in self.plans[chunk]]

    def _put(self, chunk, memory, pieces):
        for burst, piece in zip(self.plans[chunk], pieces, strict=True):
            memory[burst.address:burst.address + len(piece)] = piece

    def _settle(self, chunk):
        """From here on nothing of the chunk may be written until it is requested again."""
        self.settled[chunk] = self._pages(chunk)


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_chunks_come_whole_or_not_at_all(stall):
    met = Scene(make_config(), seed=1, requests=14, stall=stall).run().met
    assert met["answer", True]
    assert met["answer", False]
    assert met[Outcome.WINDOW] + met[Outcome.WRITE]


@pytest.mark.parametrize("seed, bus_bytes, stall", [
    (3, 32, 0.0), *(pytest.param(seed, bus_bytes, stall, marks=pytest.mark.regress)
                    for seed, (bus_bytes, stall) in enumerate(
                        [(8, 0.0), (16, 0.0), (32, 0.2), (32, 0.5), (16, 0.3)], start=4))])
def test_chunks_given_up_are_left_alone(seed, bus_bytes, stall):
    """When a cancel is taken nothing of the chunk is written any more, until it comes again."""
    met = Scene(make_config(bus_bytes), seed=seed, requests=40, stall=stall, cancel=0.01,
                abort=0.001).run().met
    print(met)
    assert met["cancel", True]   # in the midst of a frame
    assert met["answer", True]
