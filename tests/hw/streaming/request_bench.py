"""`Requests` with all that surrounds it: scheduler, memory, receiver and landing, at random."""

import random
from dataclasses import dataclass

from hw.config import StreamingConfig
from hw.streaming.record import RECORD_BYTES
from hw.streaming.requests import Requests, slot_count
from tests.hw.harness import find_port, plain, run_testbench
from tests.hw.memory_model import SLVERR, Fault, MemoryModel
from tests.hw.streaming.records import bad_fields, make_record, pack_record
from tests.hw.streaming.request_model import IDS, WATCHED, RequestModel

__all__ = ["Bench", "Rates", "make_config"]

RECORDS = 0x400


def make_config(**fields):
    return StreamingConfig(**{"head_dim": 64, "bus_bytes": 16, "chunk_tokens": 64, "chunks": 16,
                              "table_pages": 10, "outstanding": 2, "address_bits": 40, **fields})


@dataclass
class Rates:
    """Share of cycles in which each thing is begun, or a stream is ready."""

    request: float = 0.5
    withdraw: float = 0.02
    lookup: float = 0.3
    cancel: float = 0.05
    abort: float = 0.0
    sent: float = 0.6
    expected: float = 0.6
    answer: float = 0.5
    write: float = 0.2     # a frame begins to be written, has been, and ends
    bad: float = 0.2       # chunks whose record is no good


@dataclass(eq=False)
class _Frame:
    slot: int
    chunk: int
    state: str = "WAITS"   # then WRITES, WRITTEN


class Bench:
    """Runs `Requests` for a number of cycles at given rates, then until nothing is under way.

    Parameters
    ----------
    config : StreamingConfig
    seed : int
    rates : Rates
    cycles : int
    latency : int
        Of the memory; above 1 its answers also stall.
    first_id : int
    """

    def __init__(self, config, *, seed, rates, cycles, latency=4, first_id=0xFFFFFFF9):
        self.config, self.rates, self.cycles = config, rates, cycles
        self.rng = random.Random(seed)
        self.seed = seed
        self.dut = Requests(config)
        self.memory = MemoryModel(size=RECORDS + RECORD_BYTES * config.chunks, latency=latency,
                                  shuffle=latency > 1, seed=seed)
        self.records = [self._make_record(chunk) for chunk in range(config.chunks)]
        self.model = RequestModel(self.records, first_id)
        self.first_id = first_id
        self.frames = []
        self.ended = None
        self.inputs, self.seen = {}, None
        self.ports = {path: find_port(self.dut, path) for path in WATCHED}

    def _make_record(self, chunk):
        rng, address = self.rng, RECORDS + RECORD_BYTES * chunk
        record = make_record(self.config, rng)
        is_good = rng.random() >= self.rates.bad
        if not is_good and rng.random() < 0.3:
            self.memory.faults.append(Fault(address, address + 1, response=SLVERR))
        elif not is_good:
            record = make_record(self.config, rng, **rng.choice(bad_fields(self.config)))
        self.memory.data[address:address + RECORD_BYTES] = pack_record(record)
        return {**record, "is_good": is_good}

    def run(self):
        """Returns the model."""
        print(f"bench of Requests: seed={self.seed} {self.rates}")

        async def testbench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.records, RECORDS)
            ctx.set(self.dut.first_id, self.first_id)
            for _ in range(self.cycles):
                self._surround()
                self._ask(is_over=False)
                if self._happens(self._temptation(self.rates.abort)) and not self._value("abort"):
                    self._abort()
                await self._cycle()
                if self._value("abort") and not self.seen["busy"]:
                    self._set("abort", 0)
            self._set("abort", 0)
            await self._drain()
            await self._fill()

        run_testbench(self.dut, testbench, beside=[self.memory.serve_read_port(self.dut.bus)],
                      timeout_cycles=self.cycles + 9_000)
        return self.model

    def _value(self, path):
        return self.inputs.get(path, 0)

    def _set(self, path, value):
        if self.inputs.get(path) != value:
            self.inputs[path] = value
            self.ctx.set(self.ports[path], value)

    def _happens(self, rate):
        return self.rng.random() < rate

    def _ask(self, *, is_over):
        """What the scheduler offers in this cycle."""
        rng, rates, awaited = self.rng, self.rates, self.model.awaited()
        cancelled = self._value("i_cancel.payload") if self._value("i_cancel.valid") else None
        if not self._value("abort"):
            free = [chunk for chunk in range(self.config.chunks)
                    if chunk not in awaited and chunk != cancelled]
            if self._value("i_request.valid"):
                if self._happens(rates.withdraw) or is_over:
                    self._set("i_request.valid", 0)
            elif self._happens(rates.request) and free and not is_over:
                self._set("i_request.valid", 1)
                self._set("i_request.payload", rng.choice(free))
            requested = (self._value("i_request.payload") if self._value("i_request.valid")
                         else None)
            if cancelled is None and self._happens(self._temptation(rates.cancel)):
                chunk = self.ended.chunk if self.ended else rng.choice(awaited or [0])
                # Else most would end before they have begun.
                is_early = self.model.is_reading(chunk) and rng.random() < 0.8
                if chunk != requested and not is_early:
                    self._set("i_cancel.valid", 1)
                    self._set("i_cancel.payload", chunk)

    def _temptation(self, rate):
        """Of giving up: more in the cycle in which a frame ends."""
        return min(1, 10 * rate) if self.ended else rate

    def _abort(self):
        """As after the end of a job: nothing is asked any more until nothing is under way."""
        self._set("abort", 1)
        self._set("i_request.valid", 0)
        self._set("i_cancel.valid", 0)

    def _surround(self):
        """What the receiver, the landing and the sinks do in this cycle."""
        rng, rates = self.rng, self.rates
        if not self._value("i_lookup.valid") and self._happens(rates.lookup):
            near = rng.choice([self.first_id + chunk
                               for chunk in self.model.awaited() or range(self.config.chunks)])
            self._set("i_lookup.valid", 1)
            self._set("i_lookup.payload", rng.choice([
                near, near, near, near, self.first_id - 1, near + self.config.chunks,
                near ^ 1 << 31, self.first_id + rng.randrange(self.config.chunks)]) % IDS)
        for path, rate in (("o_request", rates.sent), ("o_expected", rates.expected),
                           ("o_answer", rates.answer)):
            self._set(f"{path}.ready", int(self._happens(rate)))
        zombies = self.seen["zombies"] if self.seen else 0
        for frame in self.frames:
            if self._happens(rates.write):
                if frame.state == "WAITS":
                    is_wanted = not zombies >> frame.slot & 1
                    frame.state = "WRITES" if is_wanted and rng.random() < 0.8 else "WRITTEN"
                elif frame.state == "WRITES":
                    frame.state = "WRITTEN"
        self._set("writing", sum(1 << f.slot for f in self.frames if f.state == "WRITES"))
        over = [frame for frame in self.frames if frame.state == "WRITTEN"]
        self.ended = rng.choice(over) if over and self._happens(rates.write) else None
        self._set("ended", int(self.ended is not None))
        if self.ended is not None:
            self._set("ended_slot", self.ended.slot)
            self._set("ended_good", rng.getrandbits(1))
        slots = [frame.slot for frame in self.frames] or [0]
        self._set("placed_slot", rng.choice(slots))

    async def _cycle(self):
        _, _, *values = await self.ctx.tick().sample(*self.ports.values())
        self.seen = seen = {path: plain(value)
                            for path, value in zip(self.ports, values, strict=True)}
        self.model.step(seen)
        if self.ended is not None:
            self.frames.remove(self.ended)
        if seen["taken"]:
            self.frames.append(_Frame(seen["taken_slot"], seen["o_expected.payload"]["index"]))
        for path in ("i_request", "i_cancel", "i_lookup"):
            if seen[f"{path}.valid"] and seen[f"{path}.ready"]:
                self._set(f"{path}.valid", 0)

    async def _drain(self):
        """Everything ends, without an abort: by its frame, or a cancel."""
        for _ in range(3_000):
            self._surround()
            self._ask(is_over=True)
            await self._cycle()
            if not (self.model.live or self.frames or self._value("i_cancel.valid")
                    or self.seen["busy"] or self.seen["o_request.valid"]):
                return
        raise AssertionError(f"still live: {self.model.live}")

    async def _idle(self):
        self._surround()
        await self._cycle()

    async def _fill(self):
        """All slots can be taken; none leaked. Then an abort frees them."""
        self.rates = Rates(lookup=0, cancel=0, write=1, sent=1, answer=0, request=0, withdraw=0)
        slots = slot_count(self.config)
        self._set("i_lookup.valid", 0)
        for _ in range(40):
            await self._idle()
        for chunk in range(slots):
            self._set("i_request.payload", chunk % self.config.chunks)
            self._set("i_request.valid", 1)
            for _ in range(200):
                await self._idle()
                if not self._value("i_request.valid"):
                    break
            else:
                raise AssertionError(f"only {chunk} of {slots} slots are free")
        self._set("i_request.valid", 1)
        self._set("i_request.payload", slots)
        for _ in range(100):
            await self._idle()
            assert not self.seen["i_request.ready"]
        self._abort()
        await self._idle()
        await self._idle()
        assert not self.seen["busy"]
        self._set("abort", 0)
        for _ in range(60):
            await self._idle()
        assert self.seen["i_request.ready"]
