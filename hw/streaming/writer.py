"""Writes the rows of chunks into pages of memory."""

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.bus.write_port import WritePort
from hw.config import StreamingConfig
from hw.streaming.burst_writer import BurstWriter
from hw.streaming.checks import check_config
from hw.streaming.layouts import Outcome, placement, stored_beat, windows, write_outcome
from hw.streaming.page_finder import PageFinder, page_entry
from hw.streaming.row_plan import RowPlan
from hw.streaming.write_tracker import WriteTracker

__all__ = ["PageWriter", "PlacementQueue"]


class PlacementQueue(wiring.Component):
    """Holds two placements until their chunks are through; gives them before, so that pages are
    found ahead of the rows.

    **Latency**: 1 cycle from ``i`` to ``o``.

    **Throughput**: a placement per cycle.

    **Numerics**: none.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(placement(config)))``
        Placements.
    drop : ``In(1)``
        The oldest is through; only with ``has_one``.
    restart : ``In(1)``
        With ``drop``: give again what was given behind it.
    has_one : ``Out(1)``
        One at least is held.
    o : ``Out(stream.Signature(placement(config)))``
        The same placements.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("PlacementQueue", config)
        super().__init__({
            "i": In(stream.Signature(placement(config))),
            "drop": In(1),
            "restart": In(1),
            "has_one": Out(1),
            "o": Out(stream.Signature(placement(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.i.payload.shape(), depth=2, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        held, given = Signal(range(3)), Signal(range(3))
        oldest = Signal()
        takes, gives = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.d.comb += [
            self.has_one.eq(held != 0),
            self.i.ready.eq(held != 2),
            write.addr.eq(oldest + held),
            write.data.eq(self.i.payload),
            write.en.eq(takes),
            self.o.valid.eq(held != given),
            read.addr.eq(oldest + given),
            self.o.payload.eq(read.data),
        ]
        m.d.sync += [
            held.eq(held + takes - self.drop),
            oldest.eq(oldest ^ self.drop),
            given.eq(Mux(self.drop & self.restart, 0, given + gives - self.drop)),
        ]
        return m


class PageWriter(wiring.Component):
    """Writes rows where their chunk's placement says, and reports once all is in memory.

    Each chunk is a placement, then rows, then a close. Rows come in the order K, V of token 0,
    K, V of token 1, ...; a row is a burst, or two if it crosses 4 KiB. If wanted, the exponents of
    a page follow its last row: 32 * blocks bytes in wire order, those of tokens that the chunk
    lacks left alone.

    The close says that no more rows of the chunk come; it must be taken after the chunk's last beat
    and before the next chunk's first, not within a row. If rows are missing the plan for them is
    dropped. What has been taken is written, a page's exponents only if all its rows were. So there
    is one report per placement, whether the frame was accepted, refused at its end, cut short, or
    had no row at all.

    **Latency**: 13 cycles from ``i_placement`` to the first row being taken, hidden where the chunk
    before is under way; 1 cycle from a row's first beat to ``bus.aw`` and ``bus.w``; from the last
    of a chunk's last answer, or its close, 2 cycles to ``o_done``.

    **Throughput**: a beat per cycle, also from row to row, page to page and chunk to chunk, while a
    burst is answered before ``bursts`` later ones are asked for: with rows of n beats that do not
    cross 4 KiB, in n * ``bursts`` cycles. A chunk of a page takes 9 cycles at least. A close that
    drops a plan costs the next chunk its latency.

    **Numerics**: ``golden.streaming.writer.plan_writes``, ``golden.streaming.writer.outcome_of``.

    **Errors**: a row, or a page's exponents, that do not lie in one of the windows granted, or not
    at a multiple of ``bus_bytes``, or whose page the block table lacks, are not written at all. The
    outcome is the first that applies of REFUSED (as the close says, or rows are missing), WINDOW
    (something was not written), WRITE (an error response), DONE.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_entry : ``In(stream.Signature(page_entry(config)))``
        Sets an entry of the block table; always taken. Not one that a chunk under way uses.
    i_placement : ``In(stream.Signature(placement(config)))``
        A chunk that begins; a token at least. Two are held.
    i_stored : ``In(stream.Signature(stored_beat(config)))``
        Its rows, each of them whole: one that has begun goes on whatever this bus does.
    i_close : ``In(stream.Signature(1))``
        Its end, 1 if the frame was refused. One for each placement.
    windows : ``In(windows(config))``
        What may be written, by those whose ``window_mask`` says so. Holds still while chunks are
        under way.
    bus : ``Out(WritePort(address_bits, bus_bytes))``
        The memory.
    o_done : ``Out(stream.Signature(write_outcome(config)))``
        One for each placement, in order, after the last answer.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("PageWriter", config)
        super().__init__({
            "i_entry": In(stream.Signature(page_entry(config))),
            "i_placement": In(stream.Signature(placement(config))),
            "i_stored": In(stream.Signature(stored_beat(config))),
            "i_close": In(stream.Signature(1)),
            "windows": In(windows(config)),
            "bus": Out(WritePort(config.address_bits, config.bus_bytes)),
            "o_done": Out(stream.Signature(write_outcome(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        drops_plan = Signal()
        placements = PlacementQueue(self.config)
        finder, plan = PageFinder(self.config), RowPlan(self.config)
        m.submodules.placements = placements
        m.submodules.finder = ResetInserter(drops_plan)(finder)
        m.submodules.plan = ResetInserter(drops_plan)(plan)
        m.submodules.writer = writer = BurstWriter(self.config)
        m.submodules.tracker = tracker = WriteTracker(self.config)

        wiring.connect(m, wiring.flipped(self.i_entry), finder.i_entry)
        wiring.connect(m, wiring.flipped(self.i_placement), placements.i)
        wiring.connect(m, placements.o, finder.i)
        wiring.connect(m, finder.o, plan.i)
        wiring.connect(m, plan.o, writer.i_burst)
        wiring.connect(m, wiring.flipped(self.i_stored), writer.i_stored)
        wiring.connect(m, writer.bus, wiring.flipped(self.bus))
        wiring.connect(m, tracker.o_done, wiring.flipped(self.o_done))

        mark, closes = tracker.i_mark, Signal()
        m.d.comb += [
            plan.windows.eq(self.windows),
            tracker.issues.eq(writer.issues),
            writer.has_credit.eq(tracker.has_credit),
            tracker.answered.eq(self.bus.b.valid),
            tracker.is_error.eq(self.bus.b.payload.response[1]),
            # What is complete needs no placement any more, but it is held until here.
            self.i_close.ready.eq(placements.has_one & writer.is_between & mark.ready),
            closes.eq(self.i_close.valid & self.i_close.ready),
            writer.close.eq(closes),
            placements.drop.eq(closes),
            placements.restart.eq(~writer.is_complete),
            drops_plan.eq(closes & ~writer.is_complete),
            mark.valid.eq(closes),
            mark.payload.beats.eq(writer.beats),
            mark.payload.outcome.eq(Mux(
                self.i_close.payload | ~writer.is_complete, Outcome.REFUSED.value,
                Mux(writer.is_refused, Outcome.WINDOW.value, Outcome.DONE.value))),
        ]
        return m
