"""`Landing` between a receiver, a page writer and a scheduler that gives up, at random."""

import random
from collections import deque
from dataclasses import dataclass, field

from hw.streaming.landing import Landing
from hw.streaming.layouts import Outcome, Reason
from hw.streaming.receiver import PACKETS
from hw.streaming.requests import slot_count
from tests.hw.harness import find_port, plain, run_testbench

__all__ = ["Frame", "Landings", "Rates"]

FIRST_ID = 0xFFFFFF00
UNKNOWN = (Reason.TRUNCATED, Reason.MAGIC, Reason.VERSION, Reason.FORMAT, Reason.HEADER_CRC,
           Reason.CHUNK)
WITHOUT_ROWS = (Reason.IDENTITY, Reason.SHAPE, Reason.LENGTH)
WITH_ROWS = tuple(reason for reason in Reason
                  if reason not in WITHOUT_ROWS and reason not in UNKNOWN) + (Reason.TRUNCATED,)
SEEN = ("place_valid", "placed_slot", "o_stored.valid", "o_stored.payload", "i_stored.ready",
        "o_close.valid", "o_close.payload", "i_done.ready", "i_verdict.ready", "writing", "ended",
        "ended_slot", "ended_good", "o_report.valid", "o_report.payload")


@dataclass
class Rates:
    """Share of cycles in which each stream is valid or ready, or a thing happens."""

    header: float = 0.5
    row: float = 0.8       # none with 0, but those of a row that has begun
    verdict: float = 0.6
    place: float = 0.5
    stored: float = 0.7
    close: float = 0.6
    done: float = 0.3
    report: float = 0.6
    zombie: float = 0.004


@dataclass(eq=False)
class Frame:
    """A packet, and what has become of it so far. ``outcome`` is the writer's, if all rows come."""

    number: int
    reason: Reason
    is_known: bool
    rows: int = 0
    slot: int | None = None
    outcome: Outcome | None = None
    zombie_since: int | None = None
    taken_cycle: int | None = None
    begun_cycle: int | None = None
    offered_cycle: int | None = None
    placed_cycle: int | None = None
    beats: int = 0                # that the decoder gave
    stored: int = 0               # that the writer has
    started: list = field(default_factory=list)   # cycles in which the decoder began each row
    closed_cycle: int | None = None
    was_cut: bool = False
    told: Outcome | None = None
    verdict_cycle: int | None = None
    done_cycle: int | None = None
    ended_cycle: int | None = None

    @property
    def has_rows(self):
        return self.is_known and self.reason not in WITHOUT_ROWS

    @property
    def chunk_id(self):
        return FIRST_ID + self.chunk if self.is_known else 0x1000 + self.number

    @property
    def chunk(self):
        return self.number % 16

    def is_through(self, cycle):
        """Judged and written before ``cycle``."""
        waits_for = [self.verdict_cycle] + [self.done_cycle] * self.is_placed
        return all(past is not None and past < cycle for past in waits_for)

    @property
    def is_placed(self):
        return self.placed_cycle is not None

    @property
    def is_zombie(self):
        return self.zombie_since is not None


class Landings:
    """Runs `Landing` on frames and asserts what it does with each.

    Parameters
    ----------
    config : StreamingConfig
    seed : int
    rates : Rates
    frames : int, or list of Frame
        How many at random, or which.
    script : function of Landings
        Called before each cycle; may change rates, give up frames, and look.
    """

    def __init__(self, config, *, seed, frames, rates=None, script=lambda bench: None):
        self.config, self.seed, self.rates = config, seed, rates or Rates()
        self.rng = random.Random(seed)
        self.script = script
        self.dut = Landing(config)
        self.ports = {path: find_port(self.dut, path) for path in SEEN}
        self.frames = (frames if isinstance(frames, list)
                       else [self._random_frame(number) for number in range(frames)])
        self.heads = deque(self.frames)       # whose header has not been judged
        self.under_way = deque()              # headers judged, no verdict taken
        self.to_begin = deque()
        self.placed, self.writes, self.outcomes = deque(), deque(), deque()
        self.slots = {}
        self.zombies = 0
        self.refused, self.failed = deque(), deque()
        self.last = dict.fromkeys(SEEN, 0)
        self.cycle = 0

    def _random_frame(self, number):
        rng = self.rng
        kind = rng.random()
        if kind < 0.2:
            return Frame(number, rng.choice(UNKNOWN), is_known=False)
        if kind < 0.35:
            return Frame(number, rng.choice(WITHOUT_ROWS), is_known=True)
        reason = Reason.NONE if kind < 0.8 else rng.choice(WITH_ROWS)
        outcome = Outcome.DONE if rng.random() < 0.7 else rng.choice([Outcome.WINDOW,
                                                                      Outcome.WRITE])
        return Frame(number, reason, is_known=True, rows=rng.choice([0, 1, 2, 5, 12])
                     if reason != Reason.NONE else rng.randint(1, 12), outcome=outcome)

    def run(self):
        async def testbench(ctx):
            ctx.set(self.dut.first_id, FIRST_ID)
            quiet = 0
            while quiet < 10:
                await self._step(ctx)
                quiet = 0 if self._is_busy() else quiet + 1

        print(f"bench of Landing: seed={self.seed} {self.rates}")
        run_testbench(self.dut, testbench)
        known = [frame for frame in self.frames if frame.is_known]
        assert all(frame.ended_cycle is not None for frame in known)
        assert not any(frame.is_placed for frame in self.frames if not frame.has_rows)
        assert all(frame.is_placed or frame.is_zombie for frame in known if frame.has_rows)
        return self

    def _is_busy(self):
        return bool(self.heads or self.under_way or self.slots or self.refused or self.failed
                    or self.placed or self.writes or self.outcomes or self.last["place_valid"]
                    or self.last["o_close.valid"])

    def give_up(self, frame):
        """Make the slot of a frame a zombie in this cycle."""
        if not frame.is_zombie:
            frame.zombie_since = self.cycle
            self.zombies |= 1 << frame.slot

    def _happens(self, rate):
        return self.rng.random() < rate

    async def _step(self, ctx):
        self.script(self)
        dut, offered = self.dut, self._offer()
        for path, value in offered.items():
            ctx.set(find_port(dut, path), value)
        _, _, *values = await ctx.tick().sample(*self.ports.values())
        seen = {path: plain(value) for path, value in zip(self.ports, values, strict=True)}
        self._check_holds(seen, offered)
        self._check_levels(seen)
        self._take_place(seen, offered)
        self._take_rows(seen, offered)
        closes = self._take_close(seen, offered)
        self._take_verdict(seen, offered, closes)
        self._take_done(seen, offered)
        self._take_report(seen, offered)
        self._take_end(seen)
        self.last = {**seen, "offered": offered}
        self.cycle += 1

    def _offer(self):
        """The inputs of this cycle."""
        rates = self.rates
        offered = self._offer_header()
        for frame in self.slots.values():
            if self._happens(rates.zombie):
                self.give_up(frame)
        offered["zombies"] = self.zombies
        before = self.last.get("offered", {})
        self.row = self._offer_row(before)
        offered["i_stored.valid"] = int(self.row is not None)
        if self.row is not None:
            offered["i_stored.payload"] = self._beat(self.row)
        first = self.under_way[0] if self.under_way else None
        is_ready = (first is not None and first.taken_cycle < self.cycle
                    and (not first.has_rows or first.begun_cycle is not None)
                    and first.beats == first.rows * self.config.row_beats)
        offered["i_verdict.valid"] = int(is_ready and (
            self._is_pending(before, "i_verdict") or self._happens(rates.verdict)))
        if offered["i_verdict.valid"]:
            offered["i_verdict.payload"] = {
                "reason": first.reason, "known": first.is_known, "index": first.chunk,
                "chunk_id": first.chunk_id}
        offered["place_ready"] = int(len(self.placed) < 2 and self._happens(rates.place))
        offered["o_stored.ready"] = int(bool(self.placed) and self._happens(rates.stored))
        offered["o_close.ready"] = int(bool(self.placed) and self._happens(rates.close))
        offered["i_done.valid"] = int(bool(self.outcomes) and (
            self._is_pending(before, "i_done") or self._happens(rates.done)))
        if offered["i_done.valid"]:
            offered["i_done.payload"] = {"outcome": self.outcomes[0], "beats": 0}
        offered["o_report.ready"] = int(self._happens(rates.report))
        return offered

    def _is_pending(self, before, port):
        """Offered in the cycle before, and not taken: it holds."""
        return before.get(f"{port}.valid") and not self.last[f"{port}.ready"]

    def _offer_header(self):
        """A frame that begins comes between its answer's transfer and the next."""
        offered = {"taken": 0, "begun": 0}
        if self.to_begin:
            if self._happens(self.rates.header):
                frame = self.to_begin.popleft()
                frame.begun_cycle = self.cycle
                offered.update(begun=1, begun_chunk=frame.chunk)
        elif (self.heads and len(self.under_way) < PACKETS and self._happens(self.rates.header)
              and len(self.slots) < slot_count(self.config)):
            frame = self.heads.popleft()
            self.under_way.append(frame)
            frame.taken_cycle = self.cycle
            if frame.is_known:
                frame.slot = self.rng.choice(
                    [slot for slot in range(slot_count(self.config)) if slot not in self.slots])
                self.slots[frame.slot] = frame
                self.zombies &= ~(1 << frame.slot)
                offered.update(taken=1, taken_slot=frame.slot)
            if frame.has_rows:
                self.to_begin.append(frame)
        return offered

    def _begun_first(self):
        """The frame whose rows come now: the oldest that has rows, if it has begun."""
        frame = next((frame for frame in self.under_way if frame.has_rows), None)
        return frame if frame is not None and frame.begun_cycle is not None else None

    def _offer_row(self, before):
        frame = self._begun_first()
        if frame is None or frame.beats == frame.rows * self.config.row_beats:
            return None
        in_row = frame.beats % self.config.row_beats != 0
        is_offered = (self._is_pending(before, "i_stored") or self._happens(self.rates.row)
                      or (in_row and self.rates.row == 0))
        return frame if is_offered else None

    def _beat(self, frame):
        row_beats = self.config.row_beats
        return {"data": frame.number << 32 | frame.beats,
                "last": int(frame.beats % row_beats == row_beats - 1)}

    def _check_holds(self, seen, offered):
        """Streams keep what they offer until it is taken."""
        before = self.last.get("offered")
        if before is None:
            return
        for port in ("o_stored", "o_close", "o_report"):
            if self.last[f"{port}.valid"] and not before[f"{port}.ready"]:
                assert seen[f"{port}.valid"], port
                assert seen[f"{port}.payload"] == self.last[f"{port}.payload"], port
        if self.last["place_valid"] and not before["place_ready"]:
            assert seen["place_valid"]
            assert seen["placed_slot"] == self.last["placed_slot"]

    def _check_levels(self, seen):
        for slot, frame in self.slots.items():
            is_offered = seen["place_valid"] and seen["placed_slot"] == slot
            is_writing = is_offered or (frame.is_placed and frame.done_cycle is None)
            assert seen["writing"] >> slot & 1 == is_writing
        assert not seen["writing"] & ~sum(1 << slot for slot in self.slots)

    def _take_place(self, seen, offered):
        if not seen["place_valid"]:
            return
        frame = self.slots[seen["placed_slot"]]
        assert frame.has_rows
        assert frame.begun_cycle is not None
        assert not frame.is_placed
        if frame.offered_cycle is None:
            frame.offered_cycle = self.cycle
            # Not a zombie in the cycle before.
            assert frame.zombie_since is None or frame.zombie_since >= self.cycle
        if offered["place_ready"]:
            frame.placed_cycle = self.cycle
            self.placed.append(frame)
            self.writes.append(frame)

    def _take_rows(self, seen, offered):
        if seen["o_stored.valid"] and offered["o_stored.ready"]:
            frame = self.placed[0]
            beat = seen["o_stored.payload"]["data"]
            assert beat == frame.number << 32 | frame.stored
            if frame.stored % self.config.row_beats == 0:
                started = frame.started[frame.stored // self.config.row_beats]
                assert frame.zombie_since is None or started < frame.zombie_since
            frame.stored += 1
        if self.row is not None and seen["i_stored.ready"]:
            frame = self.row
            if frame.beats % self.config.row_beats == 0:
                frame.started.append(self.cycle)
            frame.beats += 1

    def _take_close(self, seen, offered):
        """The frame that is closed in this cycle."""
        if not (seen["o_close.valid"] and offered["o_close.ready"]):
            return None
        frame = self.placed.popleft()
        frame.closed_cycle = self.cycle
        frame.was_cut = bool(seen["o_close.payload"])
        full = frame.rows * self.config.row_beats
        assert frame.stored == full or frame.was_cut
        assert frame.stored % self.config.row_beats == 0
        self.outcomes.append(Outcome.REFUSED if frame.was_cut else frame.outcome)
        return frame

    def _take_verdict(self, seen, offered, closes):
        is_taken = offered["i_verdict.valid"] and seen["i_verdict.ready"]
        if closes is not None and not (is_taken and closes is self.under_way[0]):
            # No verdict: a zombie is cut.
            assert closes.was_cut
            assert closes.is_zombie
        if not is_taken:
            return
        frame = self.under_way.popleft()
        frame.verdict_cycle = self.cycle
        if frame.has_rows:
            assert frame.closed_cycle is not None or (frame.is_zombie and not frame.is_placed)
        if closes is frame:
            assert frame.was_cut == (frame.reason != Reason.NONE)
            assert frame.stored == frame.rows * self.config.row_beats
        if frame.reason != Reason.NONE:
            self.refused.append((frame.chunk_id, frame.reason, Outcome.REFUSED))

    def _take_done(self, seen, offered):
        if not (offered["i_done.valid"] and seen["i_done.ready"]):
            return
        frame, outcome = self.writes.popleft(), self.outcomes.popleft()
        frame.done_cycle = self.cycle
        frame.told = outcome
        if outcome in (Outcome.WINDOW, Outcome.WRITE):
            self.failed.append((frame.chunk_id, Reason.NONE, outcome))

    def _take_report(self, seen, offered):
        if not seen["o_report.valid"]:
            return
        given = seen["o_report.payload"]
        report = given["chunk_id"], Reason(given["reason"]), Outcome(given["outcome"])
        queue = self.refused if report[2] == Outcome.REFUSED else self.failed
        assert queue[0] == report
        if offered["o_report.ready"]:
            queue.popleft()

    def _take_end(self, seen):
        """One of those that are through ends in each cycle."""
        through = [frame for frame in self.slots.values() if frame.is_through(self.cycle)]
        assert seen["ended"] == bool(through)
        if not through:
            return
        frame = self.slots.pop(seen["ended_slot"])
        assert frame in through
        frame.ended_cycle = self.cycle
        if not frame.is_zombie:
            is_good = frame.reason == Reason.NONE and frame.told == Outcome.DONE
            assert seen["ended_good"] == is_good
