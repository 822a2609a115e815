"""Says which code word of which page is decoded in a cycle."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.huffman.geometry import LANES, check_coded, page_item, pages_held
from hw.streaming.wire import ROWS_PER_PAGE

__all__ = ["PageSequencer"]


class PageSequencer(wiring.Component):
    """Walks the pages of frames, row by row, eight elements in a step.

    Pages of a frame whose table is wrong are dropped.

    **Latency**: 2 cycles from an item to the first step of its page.

    **Throughput**: a step per cycle while ``may_step``; pages of a frame without a gap, if each
    is there before the last one ends.

    **Numerics**: none.

    **Errors**: ``is_bad`` at the end of a frame.

    Parameters
    ----------
    config : StreamingConfig
        With at least one entropy-coded format.

    Members
    -------
    i : ``In(stream.Signature(page_item(config)))``
        Pages, and ends of frames. The lengths of a page are read in the cycle after ``loads``,
        when it is taken.
    may_step : ``In(1)``
        There is room for what a step and an end bring.
    tables_ready : ``In(1)``
        Both codes of the next frame are built.
    tables_good : ``In(1)``
        They are complete.
    takes_tables : ``Out(1)``
        That frame is the one decoded from now on.
    loads : ``Out(1)``
        The next step is the first of ``page``.
    page : ``Out(range(pages))``
    steps : ``Out(1)``
        Eight elements are decoded.
    ends : ``Out(1)``
        They are the last ones of their page.
    row : ``Out(range(32))``
        Their row.
    row_page : ``Out(range(pages))``
        Its page.
    ends_row : ``Out(1)``
        They are the last ones of their row.
    frees : ``Out(1)``
        A page is not needed any more.
    ends_frame : ``Out(1)``
        A frame ends; its last step was before.
    is_bad : ``Out(1)``
        Its tables were wrong.
    is_refused : ``Out(1)``
        One of its directories was.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_coded("PageSequencer", config)
        pages = pages_held(config.head_dim)
        super().__init__({
            "i": In(stream.Signature(page_item(config))),
            "may_step": In(1),
            "tables_ready": In(1), "tables_good": In(1), "takes_tables": Out(1),
            "loads": Out(1), "page": Out(range(pages)),
            "steps": Out(1), "ends": Out(1), "row": Out(range(ROWS_PER_PAGE)),
            "row_page": Out(range(pages)), "ends_row": Out(1),
            "frees": Out(1),
            "ends_frame": Out(1), "is_bad": Out(1), "is_refused": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        item = self.i.payload
        is_open, loaded, drops = Signal(), Signal(), Signal()
        # Of the item in the cycle before, since `loads` reaches far. It is still the same.
        is_page, continues = Signal(), Signal()
        step, last_row = Signal(range(self.config.head_dim // LANES)), Signal.like(self.row)
        m.d.comb += [
            self.i.ready.eq(loaded | drops | self.ends_frame),
            self.frees.eq(self.ends | drops),
            self.is_refused.eq(item.is_refused),
        ]
        m.d.sync += [
            loaded.eq(self.loads),
            is_page.eq(self.i.valid & ~item.is_end),
            continues.eq(self.i.valid & ~item.is_end & ~item.is_first),
        ]

        with m.FSM(name="state"):
            with m.State("IDLE"):
                m.d.comb += self.loads.eq(is_open & is_page & ~self.is_bad)
                with m.If(self.i.valid):
                    self._take_other(m, is_open, drops)
                with m.If(self.loads):
                    m.next = "STEP"
            with m.State("STEP"):
                m.d.comb += [
                    self.steps.eq(self.may_step),
                    self.ends_row.eq(self.steps & step.all()),
                    self.ends.eq(self.ends_row & (self.row == last_row)),
                    self.loads.eq(self.ends & continues),
                ]
                with m.If(self.ends & ~self.loads):
                    m.next = "IDLE"

        m.d.sync += [
            step.eq(step + self.steps),
            self.row.eq(self.row + self.ends_row),
            self.page.eq(self.page + (self.loads | drops)),
        ]
        with m.If(self.loads):
            m.d.sync += [
                self.row.eq(0),
                self.row_page.eq(self.page),
                last_row.eq(Cat(Const(1, 1), (item.tokens - 1)[:len(last_row) - 1])),
            ]
        return m

    def _take_other(self, m, is_open, drops):
        """Items that are not decoded, and tables for those that are."""
        item = self.i.payload
        with m.If(item.is_first & ~is_open):
            # A frame that was cut in its tables has none.
            m.d.comb += self.takes_tables.eq(self.tables_ready | item.is_cut)
            with m.If(self.takes_tables):
                m.d.sync += [
                    is_open.eq(1),
                    self.is_bad.eq(~self.tables_good & ~item.is_cut),
                ]
        with m.Elif(item.is_end):
            m.d.comb += self.ends_frame.eq(self.may_step)
            with m.If(self.may_step):
                m.d.sync += is_open.eq(0)
        with m.Elif(self.is_bad):
            m.d.comb += drops.eq(1)
