"""Moves bytes within and between beats, from where they were read to where they are written."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.axi4 import beat_size
from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.burst import BurstSplitter
from hw.streaming.checks import check_config
from hw.streaming.copy_layouts import (
    copy_item,
    copy_row,
    lower_error,
    read_beat,
    row_context,
)
from hw.streaming.layouts import CopyError

__all__ = ["CopyAlign"]


class CopyAlign(wiring.Component):
    """Makes of the beats that were read the beats of write bursts.

    A beat that is written has bytes of two that were read: the one that comes in, and the one
    before. If its first byte is of an earlier place in the beat than the row's first byte was, the
    first beat read is held until the second is there.

    When a beat came with an error, or did not come, the row is given up: what is left of it is
    taken and dropped, and so are the other rows of the command.

    **Latency**: 1 cycle from the last beat on ``i_beat`` that a beat on ``o`` needs; at the
    earliest 3 cycles from its row on ``i_row``.

    **Throughput**: 1 beat per cycle, from one row to the next too; one more cycle for a row whose
    first beat is held, and for one that is given up.

    **Numerics**: ``golden.streaming.copy.run_copy``.

    **Errors**: the lowest of a command stands in its last item.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_row : ``In(stream.Signature(copy_row(config)))``
        Rows; ``config.bursts`` of them wait here for their beats.
    i_beat : ``In(stream.Signature(read_beat(config)))``
        Their beats.
    o : ``Out(stream.Signature(copy_item(config)))``
        Beats to write, burst after burst, the last of a command marked. In place of the rest of a
        row that was given up comes one item marked ``is_dropped``.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("CopyAlign", config)
        super().__init__({
            "i_row": In(stream.Signature(copy_row(config))),
            "i_beat": In(stream.Signature(read_beat(config))),
            "o": Out(stream.Signature(copy_item(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.splitter = splitter = BurstSplitter(config, context=row_context(config))
        m.submodules.rows = rows = Queue(splitter.i.payload.shape(), depth=config.bursts)
        self._queue_row(m, rows)
        wiring.connect(m, rows.o, splitter.i)

        # A step takes a beat, gives a beat, or both.
        place = beat_size(config.bus_bytes)
        step = Signal(data.StructLayout({
            "takes": 1, "gives": 1, "shift": place, "first": place, "tail": place,
            "item": copy_item(config)}))
        step_valid, advance = Signal(), Signal()
        now, before = Signal(8 * config.bus_bytes), Signal(8 * config.bus_bytes)
        m.d.comb += advance.eq(~step_valid | ~step.gives | self.o.ready)
        with m.If(advance):
            m.d.sync += now.eq(self.i_beat.payload.data)
            with m.If(step_valid & step.takes):
                m.d.sync += before.eq(now)
        self._sequence(m, splitter, step, step_valid, advance)

        m.d.comb += [
            self.o.valid.eq(step_valid & step.gives),
            self.o.payload.eq(step.item),
            self.o.payload.data.eq(self._join(m, before, now, step.shift)),
            self.o.payload.strobe.eq(Cat(
                (step.first <= byte) & (byte <= step.tail) for byte in range(config.bus_bytes))),
        ]
        return m

    def _queue_row(self, m, rows):
        row, queued = self.i_row.payload, rows.i.payload
        place = beat_size(self.config.bus_bytes)
        m.d.comb += [
            queued.address.eq(row.destination),
            queued.bytes.eq(row.bytes),
            queued.context.shift.eq(row.destination[:place] - row.source[:place]),
            queued.context.is_early.eq(row.destination[:place] < row.source[:place]),
            rows.i.valid.eq(self.i_row.valid),
            self.i_row.ready.eq(rows.i.ready),
        ]
        m.d.comb += [queued.context[name].eq(row[name])
                     for name in ("tag", "is_feed", "error", "closes")]

    def _join(self, m, before, now, shift):
        """A beat: the last ``shift`` bytes of the beat before, and the first of this one."""
        count = self.config.bus_bytes
        joined = Signal.like(now)
        m.d.comb += joined.eq(Cat(
            Mux(shift < count - byte, now.word_select(byte, 8), before.word_select(byte, 8))
            for byte in range(count)))
        for bit in range(len(shift)):
            rotated = Signal.like(now, name=f"rotated_{bit}")
            m.d.comb += rotated.eq(Mux(shift[bit], joined.rotate_left(8 << bit), joined))
            joined = rotated
        return joined

    def _sequence(self, m, splitter, step, step_valid, advance):
        """Decide the step that comes after the one on offer."""
        piece, beat = splitter.o.payload, self.i_beat.payload
        context = piece.context
        is_held = Signal()    # the row's first beat was taken before one could be given
        is_spent = Signal()   # all beats of the row were taken
        index = Signal(8)     # of the beat in its burst
        error = Signal(CopyError)   # of the command so far
        is_lost = Signal()
        takes, gives, ends_burst, ends_row = Signal(), Signal(), Signal(), Signal()

        is_bad = beat.failed | beat.is_empty
        waits_for_more = context.is_early & ~is_held
        m.d.comb += [
            is_lost.eq((error != CopyError.NONE) | (context.error != CopyError.NONE)),
            takes.eq(splitter.o.valid & self.i_beat.valid & ~is_spent),
            self.i_beat.ready.eq(splitter.o.valid & ~is_spent & advance),
        ]
        with m.If(is_lost):
            m.d.comb += [
                gives.eq(splitter.o.valid & is_spent & piece.last),
                ends_burst.eq(gives),
                ends_row.eq(gives),
                # Bursts that are still to come are cut off.
                splitter.cut.eq(1),
                splitter.o.ready.eq(advance & (is_spent | ~piece.last)),
            ]
        with m.Else():
            m.d.comb += [
                gives.eq(splitter.o.valid & (is_spent | (
                    self.i_beat.valid & ~is_bad & ~waits_for_more))),
                ends_burst.eq(index == piece.length),
                ends_row.eq(gives & ends_burst & piece.last),
                splitter.o.ready.eq(advance & gives & ends_burst),
            ]

        with m.If(advance):
            m.d.sync += [
                step_valid.eq(takes | gives),
                step.takes.eq(takes),
                step.gives.eq(gives),
            ]
            with m.If(takes):
                m.d.sync += [is_held.eq(1), is_spent.eq(beat.last)]
                with m.If(is_bad):
                    m.d.sync += error.eq(lower_error(error.as_value(), Mux(
                        beat.failed, CopyError.READ.value, CopyError.ABORTED.value)))
            with m.If(gives):
                m.d.sync += index.eq(Mux(ends_burst, 0, index + 1))
            with m.If(ends_row):
                m.d.sync += [is_held.eq(0), is_spent.eq(0)]
                with m.If(context.closes):
                    m.d.sync += error.eq(CopyError.NONE)
            m.d.sync += [
                step.shift.eq(context.shift),
                step.first.eq(Mux(index == 0, piece.address, 0)),
                step.tail.eq(Mux(ends_burst, piece.tail, -1)),
                step.item.address.eq(piece.address),
                step.item.length.eq(piece.length),
                step.item.is_dropped.eq(is_lost),
                step.item.ends_burst.eq(ends_burst),
                step.item.closes.eq(ends_row & context.closes),
                step.item.is_feed.eq(context.is_feed),
                step.item.tag.eq(context.tag),
                step.item.error.eq(lower_error(
                    error.as_value(), context.error.as_value())),
            ]
