"""Frames under way: which rows are written where, and what came of each."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import Arbiter, Queue, SkidBuffer
from hw.streaming.checks import check_config
from hw.streaming.layouts import (
    Outcome,
    Reason,
    stored_beat,
    verdict,
    write_outcome,
)
from hw.streaming.receiver import PACKETS
from hw.streaming.requests import slot_count

__all__ = ["Landing", "frame_report"]

LINED = 2  # frames whose placement was given: of the rows that pass now, and of the next


def frame_report() -> data.StructLayout:
    """A frame that did not become a chunk: refused, for ``reason``, or not written."""
    return data.StructLayout({"chunk_id": 32, "reason": Reason, "outcome": Outcome})


class Landing(wiring.Component):
    """Leads the rows of each frame to the page writer, or drops them, and joins the frame's verdict
    with the writer's outcome.

    A frame's placement is offered while rows of the frame before still pass. Rows pass through a
    register, and a close only when it is empty, so that no close overtakes a row.

    A frame whose slot is a zombie when its turn for a placement comes is dropped without one. When
    it becomes one later, no row begins to pass any more, and the placement is closed.

    **Latency**: of rows 1 cycle. From ``begun`` to ``place_valid`` 2 cycles, from the placement
    taken to the first row taken 1; from the later of verdict and outcome to ``ended`` 1, one frame
    per cycle. From a zombie's bit, if no row is under way, to ``o_close`` 1 cycle.

    **Throughput**: a beat per cycle, also from frame to frame. A placement per 2 cycles.

    **Numerics**: none, rows pass unchanged.

    **Errors**: ``o_report``, one for each packet refused and each frame not written as it should.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    first_id : ``In(32)``
        Frame id of chunk 0.
    taken, taken_slot : ``In``
        An awaited frame begins to be judged.
    begun, begun_chunk : ``In``
        Its header passed: rows come.
    zombies : ``In``, a bit per slot
        Slots whose rows nobody wants any more.
    i_verdict : ``In(stream.Signature(verdict(config)))``
        Not in the cycle of ``taken`` or ``begun``; after the frame's rows.
    i_stored, o_stored : streams of ``stored_beat(config)``
        Rows, from the decoder and to the writer.
    place_valid, place_ready, placed_slot : the placement of this slot, to the writer
    o_close : ``Out(stream.Signature(1))``
        The placement taken last gets no more rows; 1: they are not to be used.
    i_done : ``In(stream.Signature(write_outcome(config)))``
        From the writer, once per placement, in order.
    writing : ``Out``, a bit per slot
        From the placement's offer to the writer's outcome.
    ended, ended_slot, ended_good : ``Out``
    o_report : ``Out(stream.Signature(frame_report()))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Landing", config)
        slots = slot_count(config)
        super().__init__({
            "first_id": In(32),
            "taken": In(1),
            "taken_slot": In(range(slots)),
            "begun": In(1),
            "begun_chunk": In(config.chunk_bits),
            "zombies": In(slots),
            "i_verdict": In(stream.Signature(verdict(config))),
            "i_stored": In(stream.Signature(stored_beat(config))),
            "o_stored": Out(stream.Signature(stored_beat(config))),
            "place_valid": Out(1),
            "place_ready": In(1),
            "placed_slot": Out(range(slots)),
            "o_close": Out(stream.Signature(1)),
            "i_done": In(stream.Signature(write_outcome(config))),
            "writing": Out(slots),
            "ended": Out(1),
            "ended_slot": Out(range(slots)),
            "ended_good": Out(1),
            "o_report": Out(stream.Signature(frame_report())),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        slots = slot_count(self.config)
        frame = data.StructLayout({"slot": range(slots), "chunk": self.config.chunk_bits})
        row_frame = data.StructLayout({"slot": range(slots), "is_placed": 1})
        # There is a place for every packet under way: neither of the first two is ever found full.
        m.submodules.order = order = Queue(range(slots), depth=PACKETS)
        m.submodules.frames = frames = Queue(frame, depth=PACKETS)
        m.submodules.lined = lined = Queue(row_frame, depth=LINED)
        m.submodules.written = written = Queue(frame, depth=PACKETS)
        m.submodules.refusals = refusals = Queue(frame_report(), depth=2)
        m.submodules.failures = failures = Queue(frame_report(), depth=2)
        m.submodules.reports = reports = Arbiter(frame_report(), count=2)
        wiring.connect(m, refusals.o, reports.i[0])
        wiring.connect(m, failures.o, reports.i[1])
        wiring.connect(m, reports.o, wiring.flipped(self.o_report))
        latest = Signal(range(slots))
        with m.If(self.taken):
            m.d.sync += latest.eq(self.taken_slot)
        m.d.comb += [
            order.i.valid.eq(self.taken),
            order.i.payload.eq(self.taken_slot),
            frames.i.valid.eq(self.begun),
            frames.i.payload.slot.eq(latest),
            frames.i.payload.chunk.eq(self.begun_chunk),
        ]
        judged, is_bad = Signal(slots), Signal(slots)
        self._place(m, frames, lined, written)
        rows = self._pass_rows(m, lined)
        self._judge(m, order, lined, rows, refusals.i, judged, is_bad)
        self._finish(m, written, failures.i, is_bad)
        self._end(m, judged, is_bad)
        return m

    def _place(self, m, frames, lined, written):
        """Offer the placement of the oldest frame without one; a zombie needs none."""
        frame = frames.o.payload
        begins, is_placed, is_skipped = Signal(), Signal(), Signal()
        is_zombie = self.zombies.bit_select(frame.slot, 1)
        m.d.comb += [
            self.placed_slot.eq(frame.slot),
            begins.eq(frames.o.valid & ~self.place_valid & lined.i.ready & written.i.ready),
            is_skipped.eq(begins & is_zombie),
            is_placed.eq(self.place_valid & self.place_ready),
            frames.o.ready.eq(is_placed | is_skipped),
            lined.i.valid.eq(is_placed | is_skipped),
            lined.i.payload.slot.eq(frame.slot),
            lined.i.payload.is_placed.eq(is_placed),
            written.i.valid.eq(is_placed),
            written.i.payload.eq(frame),
        ]
        with m.If(begins & ~is_zombie):
            m.d.sync += [
                self.place_valid.eq(1),
                self.writing.bit_select(frame.slot, 1).eq(1),
            ]
        with m.If(is_placed):
            m.d.sync += self.place_valid.eq(0)

    def _pass_rows(self, m, lined):
        """Let the rows of the oldest frame pass, or drop them. Returns the register's output."""
        m.submodules.rows = rows = SkidBuffer(stored_beat(self.config))
        wiring.connect(m, rows.o, wiring.flipped(self.o_stored))
        current = lined.o.payload
        self._passes, self._closes = passes, closes = Signal(), Signal()
        self._is_closed, self._is_cutting = is_closed, is_cutting = Signal(), Signal()
        self._is_dropped = is_dropped = Signal()
        is_stopped, in_row = Signal(), Signal()
        m.d.comb += [
            passes.eq(lined.o.valid & current.is_placed & ~is_closed & ~is_cutting),
            is_dropped.eq(lined.o.valid & (~current.is_placed | is_closed)),
            rows.i.payload.eq(self.i_stored.payload),
            is_stopped.eq(self.zombies.bit_select(current.slot, 1) & ~in_row),
            rows.i.valid.eq(self.i_stored.valid & passes & ~is_stopped),
            self.i_stored.ready.eq((passes & ~is_stopped & rows.i.ready) | is_dropped),
        ]
        with m.If(rows.i.valid & rows.i.ready):
            m.d.sync += in_row.eq(~self.i_stored.payload.last)
        # Where a verdict closes the placement already, it is too late for a cut.
        with m.If(passes & is_stopped & ~closes):
            m.d.sync += is_cutting.eq(1)
        with m.If(is_cutting & self.o_close.valid & self.o_close.ready):
            m.d.sync += [is_cutting.eq(0), is_closed.eq(1)]
        return rows.o

    def _judge(self, m, order, lined, rows, report, judged, is_bad):
        """Take a verdict when it closes its frame's placement, or the frame is dropped."""
        found = self.i_verdict.payload
        is_refused, is_rowless = Signal(), Signal()
        taken, is_free = Signal(), Signal()
        m.d.comb += [
            is_refused.eq(found.reason != Reason.NONE),
            is_rowless.eq(~found.known | (found.reason == Reason.IDENTITY)
                          | (found.reason == Reason.SHAPE) | (found.reason == Reason.LENGTH)),
            is_free.eq(self.i_verdict.valid & (report.ready | ~is_refused)),
            self._closes.eq(is_free & ~is_rowless & self._passes),
            self.o_close.valid.eq((self._closes | self._is_cutting) & ~rows.valid),
            self.o_close.payload.eq(is_refused | self._is_cutting),
            taken.eq(is_free & (is_rowless | self._is_dropped | (
                self._closes & self.o_close.valid & self.o_close.ready))),
            self.i_verdict.ready.eq(taken),
            report.valid.eq(taken & is_refused),
            report.payload.chunk_id.eq(found.chunk_id),
            report.payload.reason.eq(found.reason),
            report.payload.outcome.eq(Outcome.REFUSED),
        ]
        with m.If(taken & found.known):
            m.d.comb += order.o.ready.eq(1)
            m.d.sync += judged.bit_select(order.o.payload, 1).eq(1)
            with m.If(is_refused):
                m.d.sync += is_bad.bit_select(order.o.payload, 1).eq(1)
            with m.If(~is_rowless):
                m.d.comb += lined.o.ready.eq(1)
                m.d.sync += self._is_closed.eq(0)

    def _finish(self, m, written, report, is_bad):
        """Take the writer's outcomes. REFUSED has been told with the verdict."""
        frame, outcome = written.o.payload, self.i_done.payload.outcome
        is_told = (outcome == Outcome.DONE) | (outcome == Outcome.REFUSED)
        m.d.comb += [
            report.payload.chunk_id.eq(self.first_id + frame.chunk),
            report.payload.outcome.eq(outcome),
            report.valid.eq(self.i_done.valid & ~is_told),
            self.i_done.ready.eq(is_told | report.ready),
            written.o.ready.eq(self.i_done.valid & self.i_done.ready),
        ]
        with m.If(written.o.ready):
            m.d.sync += self.writing.bit_select(frame.slot, 1).eq(0)
            with m.If(outcome != Outcome.DONE):
                m.d.sync += is_bad.bit_select(frame.slot, 1).eq(1)

    def _end(self, m, judged, is_bad):
        """A frame is through when it was judged and nothing of it is being written."""
        ready = Signal(len(judged))
        m.d.comb += [
            ready.eq(judged & ~self.writing),
            self.ended.eq(ready.any()),
            self.ended_good.eq(~is_bad.bit_select(self.ended_slot, 1)),
        ]
        for number in reversed(range(len(judged))):
            with m.If(ready[number]):
                m.d.comb += self.ended_slot.eq(number)
        with m.If(self.ended):
            m.d.sync += [
                judged.bit_select(self.ended_slot, 1).eq(0),
                is_bad.bit_select(self.ended_slot, 1).eq(0),
            ]
