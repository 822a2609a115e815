"""A memory for the Amaranth simulator: answers read ports and AXI4 buses in a test.

Plain Python per cycle, so for small units only. Whole units run against ``sim.memory``.
"""

import random
from collections import deque
from dataclasses import dataclass, field

__all__ = ["Fault", "MemoryModel"]

OKAY, SLVERR, DECERR = 0, 2, 3


@dataclass(frozen=True)
class Fault:
    """What goes wrong with bursts whose first address is in ``low <= address < high``.

    ``response`` is given on each beat (or write response); ``extra_beats`` lengthens (positive) or
    shortens (negative) a read burst, which keeps one beat at least.
    """

    low: int
    high: int
    response: int = OKAY
    extra_beats: int = 0


@dataclass
class _Burst:
    id: int
    ready_at: int
    beats: deque = field(default_factory=deque)


class MemoryModel:
    """Bytes, the testbenches that serve buses from them, and a record of what was asked.

    Parameters
    ----------
    size : int
        Bytes. Addresses beyond answer DECERR.
    latency : int
        Cycles from the transfer of a request to its first beat, or from the last write beat to the
        response.
    shuffle : bool
        Bursts of different ids return interleaved, and beats come late at random.
    seed : int
        Seed of the contents, the interleaving and the delays.

    Attributes
    ----------
    data : bytearray
    faults : list of Fault
        For reads.
    write_faults : list of Fault
        For writes.
    reads, writes : list
        (address, beats) of each burst in order of its transfer.
    beat_cycles : list of int
        Cycle of each read beat transferred.
    held_cycles : list of int
        Cycles in which the master held up a read beat.
    """

    def __init__(self, *, size, latency=4, shuffle=False, seed=0):
        self.rng = random.Random(seed)
        self.data = bytearray(self.rng.randbytes(size))
        self.latency = latency
        self.shuffle = shuffle
        self.faults = []
        self.write_faults = []
        self.reads = []
        self.writes = []
        self.beat_cycles = []
        self.held_cycles = []

    def serve_read_port(self, port):
        """Return a testbench that answers a `ReadPort`."""
        return self._reader(port, ("address", "length"), ("data", "response", "last"), has_id=False)

    def serve_axi_reads(self, bus):
        """Return a testbench that answers ``ar`` and ``r`` of an AXI4 signature."""
        return self._reader(bus, ("addr", "len"), ("data", "resp", "last"), has_id=True)

    def _read_burst(self, address, length, width, now, identity):
        self.reads.append((address, length + 1))
        response, beats = OKAY, length + 1
        for fault in self.faults:
            if fault.low <= address < fault.high:
                response, beats = fault.response, max(1, beats + fault.extra_beats)
        burst = _Burst(identity, now + self.latency)
        for beat in range(beats):
            low = address + beat * width
            missing = low + width > len(self.data)
            word = 0 if missing else int.from_bytes(self.data[low:low + width], "little")
            burst.beats.append((word, DECERR if missing else response, beat == beats - 1))
        return burst

    def _next_burst(self, pending, now):
        """The burst that gives the next beat: the oldest, or any that is the oldest of its id."""
        if not self.shuffle:
            return pending[0] if pending and pending[0].ready_at <= now else None
        heads = {}
        for burst in pending:
            heads.setdefault(burst.id, burst)
        ready = [burst for burst in heads.values() if burst.ready_at <= now]
        return self.rng.choice(ready) if ready and self.rng.random() < 0.6 else None

    def _reader(self, bus, request, answer, *, has_id):
        address_name, length_name = request
        data_name, response_name, last_name = answer
        width = len(bus.r.payload[data_name]) // 8

        async def serve(ctx):
            pending = []
            now, offered = 0, None
            while True:
                if offered is None and (burst := self._next_burst(pending, now)) is not None:
                    offered = burst
                    word, response, last = burst.beats[0]
                    payload = {data_name: word, response_name: response, last_name: last}
                    ctx.set(bus.r.payload, {**payload, "id": burst.id} if has_id else payload)
                ctx.set(bus.r.valid, offered is not None)
                ask = not self.shuffle or self.rng.random() < 0.7
                ctx.set(bus.ar.ready, ask)
                _, _, valid, asked, taken = await ctx.tick().sample(
                    bus.ar.valid, bus.ar.payload, bus.r.ready)
                if offered is not None and taken:
                    self.beat_cycles.append(now)
                    offered.beats.popleft()
                    if not offered.beats:
                        pending.remove(offered)
                    offered = None
                elif offered is not None:
                    self.held_cycles.append(now)
                now += 1
                if valid and ask:
                    pending.append(self._read_burst(
                        asked[address_name], asked[length_name], width, now - 1,
                        asked["id"] if has_id else 0))
        return serve

    def serve_axi_writes(self, bus):
        """Return a testbench that answers ``aw``, ``w`` and ``b`` of an AXI4 signature."""
        return self._writer(bus, ("addr", "len"), "strb", "resp", has_id=True)

    def serve_write_port(self, port):
        """Return a testbench that answers a `WritePort`."""
        return self._writer(port, ("address", "length"), "strobe", "response", has_id=False)

    def _writer(self, bus, request, strobe_name, response_name, *, has_id):
        address_name, length_name = request

        async def serve(ctx):
            width = len(bus.w.payload[strobe_name])
            addresses, beats, answers = deque(), deque(), deque()
            now = 0
            while True:
                answered = bool(answers) and answers[0][0] <= now
                if answered:
                    payload = {response_name: answers[0][2]}
                    ctx.set(bus.b.payload, {**payload, "id": answers[0][1]} if has_id else payload)
                ctx.set(bus.b.valid, answered)
                take_address = not self.shuffle or self.rng.random() < 0.5
                take_data = not self.shuffle or self.rng.random() < 0.5
                ctx.set(bus.aw.ready, take_address)
                ctx.set(bus.w.ready, take_data)
                _, _, aw_valid, aw, w_valid, w, b_ready = await ctx.tick().sample(
                    bus.aw.valid, bus.aw.payload, bus.w.valid, bus.w.payload, bus.b.ready)
                if answered and b_ready:
                    answers.popleft()
                if aw_valid and take_address:
                    addresses.append(
                        (aw[address_name], aw[length_name], aw["id"] if has_id else 0))
                if w_valid and take_data:
                    beats.append((w["data"], w[strobe_name], w["last"]))
                while addresses and len(beats) > addresses[0][1]:
                    address, length, identity = addresses.popleft()
                    response = self._write_burst(
                        address, [beats.popleft() for _ in range(length + 1)], width)
                    delay = self.rng.randrange(30) if self.shuffle else 0
                    ready_at = max(now + self.latency + delay, answers[-1][0] if answers else 0)
                    answers.append((ready_at, identity, response))
                now += 1
        return serve

    def _write_burst(self, address, beats, width):
        self.writes.append((address, len(beats)))
        assert [last for _, _, last in beats] == [0] * (len(beats) - 1) + [1], "wlast out of place"
        for fault in self.write_faults:
            if fault.low <= address < fault.high:
                return fault.response
        address -= address % width
        if address + width * len(beats) > len(self.data):
            return DECERR
        for beat, (word, strobes, _) in enumerate(beats):
            for byte in range(width):
                if strobes >> byte & 1:
                    self.data[address + beat * width + byte] = word >> (8 * byte) & 255
        return OKAY
