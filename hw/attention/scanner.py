"""Walks the pages of a query from the most recent one down, and says what each page gives."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.priority import highest_bit
from hw.arith.rounding import delay
from hw.attention.distance_buffer import group_bits
from hw.attention.layouts import Error
from hw.attention.page_filter import PageFilter
from hw.attention.retrieval_layouts import (
    Strobe,
    check_config,
    page_choice,
    scan_job,
    store_page_bits,
)
from hw.config import PAGE_TOKENS, PAGES_PER_GROUP
from hw.stream import Queue

__all__ = ["PageWalk", "Scanner"]

QUEUE_PAGES = 8     # covers the way from the choice of a page to the queue, and back
FILTER_CYCLES = 3


class PageWalk(wiring.Component):
    """Lists the pages that may hold a selected token, in descending order.

    A group of 16 pages is examined per cycle through the pages' smallest distances.

    **Latency**: 2 cycles from ``i_job`` to the first page, if it is in the first group.

    **Throughput**: one page, or one group without a page, per cycle.

    **Numerics**: none.

    **Errors**: a query with an error has no pages.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_job : ``In(Strobe(scan_job(config)))``
        A query; only once ``done`` is high.
    limit : ``In(distance_bits)``
        Distances of the limit or more are of no interest; valid 1 cycle after ``i_job``.
    minima : ``In(ReadPort.Signature(...))``
        Smallest distances of the pages of a group; address: group, then bank.
    o : ``Out(stream.Signature(page_bits))``
        Pages.
    done : ``Out(1)``
        All pages of the query were given.
    """

    def __init__(self, config):
        self._config = check_config("PageWalk", config)
        bits = config.distance_bits
        super().__init__({
            "i_job": In(Strobe(scan_job(config))),
            "limit": In(bits),
            "minima": In(memory.ReadPort.Signature(
                addr_width=group_bits(config) + 1, shape=data.ArrayLayout(bits, PAGES_PER_GROUP))),
            "o": Out(stream.Signature(config.page_bits)),
            "done": Out(1),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        scope = self.i_job.payload.scope
        last_page = ((scope.visible - 1) >> (PAGE_TOKENS - 1).bit_length())[:self.config.page_bits]
        slot_bits = (PAGES_PER_GROUP - 1).bit_length()
        last_group = last_page[slot_bits:]

        # Three places for a group: its number, its minima from the memory, its pages still to give.
        group = Signal(group_bits(self.config))
        unread = Signal()               # `group` and those below it are still to be read
        fetched = Signal.like(group)
        fetched_valid = Signal()
        pages = Signal(PAGES_PER_GROUP)
        pages_group = Signal.like(group)
        advance = Signal()              # the minima move on, and make room

        bank = Signal()
        visit_all = Signal()
        slots = Signal(PAGES_PER_GROUP)  # pages of the first group that exist
        with m.If(self.i_job.valid):
            m.d.sync += [
                bank.eq(scope.bank),
                visit_all.eq(scope.visit_all),
                slots.eq(Cat(last_page[:slot_bits] >= slot for slot in range(PAGES_PER_GROUP))),
            ]
        with m.Elif(advance & fetched_valid):
            m.d.sync += slots.eq(~0)

        begin = self.i_job.valid & (scope.error == Error.NONE)
        address = Mux(self.i_job.valid, last_group, group)
        read = begin | (unread & (advance | ~fetched_valid))
        m.d.comb += [
            self.minima.en.eq(read),
            self.minima.addr.eq(Cat(address, Mux(self.i_job.valid, scope.bank, bank))),
        ]
        with m.If(read):
            m.d.sync += [group.eq(address - 1), unread.eq(address != 0), fetched.eq(address)]
        with m.If(read | advance):
            m.d.sync += fetched_valid.eq(read)

        candidates = slots & (self._possible() | visit_all.replicate(PAGES_PER_GROUP))
        self._build_pick(m, pages, pages_group, advance)
        with m.If(advance):
            m.d.sync += [
                pages.eq(candidates & fetched_valid.replicate(PAGES_PER_GROUP)),
                pages_group.eq(fetched),
            ]
        m.d.comb += self.done.eq(~unread & ~fetched_valid & (pages == 0))
        return m

    def _possible(self):
        """Pages whose smallest distance may be admitted; that of a page with forced tokens is 0."""
        return Cat((distance < self.limit) | (distance == 0) for distance in self.minima.data)

    def _build_pick(self, m, pages, pages_group, advance):
        """Give the highest page of the group; ask for the next group with the last one."""
        slot, highest = highest_bit(pages)
        others = pages & ~highest
        taken = self.o.valid & self.o.ready
        m.d.comb += [
            self.o.valid.eq(pages != 0),
            self.o.payload.eq(Cat(slot, pages_group)),
            advance.eq((pages == 0) | (taken & (others == 0))),
        ]
        with m.If(taken):
            m.d.sync += pages.eq(others)


class Scanner(wiring.Component):
    """Third stage of retrieval: classes of the tokens of each page that has any.

    **Latency**: 6 cycles from ``i`` to the first page on ``o``, if it is in the first group of 16.

    **Throughput**: one page per cycle; groups without a candidate pass at one per cycle. 6 cycles
    between the last page of a query and the first of the next.

    **Numerics**: ``golden.selection.select``.

    **Errors**: a query with an error gives its end only, with the error.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(scan_job(config)))``
        Queries with their thresholds.
    minima, distances : ``In(ReadPort.Signature(...))``
        Of the distance buffer.
    o : ``Out(stream.Signature(page_choice(config)))``
        Pages in descending order, then the end of the query. A page may turn out to give nothing.
    scanning : ``Out(1)``
        A query is being scanned.
    """

    def __init__(self, config):
        self._config = check_config("Scanner", config)
        bits = config.distance_bits
        super().__init__({
            "i": In(stream.Signature(scan_job(config))),
            "minima": In(memory.ReadPort.Signature(
                addr_width=group_bits(config) + 1, shape=data.ArrayLayout(bits, PAGES_PER_GROUP))),
            "distances": In(memory.ReadPort.Signature(
                addr_width=config.page_bits + 1, shape=data.ArrayLayout(bits, PAGE_TOKENS))),
            "o": Out(stream.Signature(page_choice(config))),
            "scanning": Out(1),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.walk = walk = PageWalk(config)
        m.submodules.filter = page_filter = PageFilter(config)
        m.submodules.queue = queue = Queue(page_choice(config), depth=QUEUE_PAGES)
        wiring.connect(m, walk.minima, wiring.flipped(self.minima))
        wiring.connect(m, queue.o, wiring.flipped(self.o))

        start = Signal()
        scope = Signal(self.i.payload.scope.shape())
        m.d.comb += start.eq(self.i.valid & self.i.ready)
        with m.If(start):
            m.d.sync += scope.eq(self.i.payload.scope)

        issue, end = self._build_issue(m, start, walk, queue)
        m.d.comb += [
            self.distances.en.eq(issue),
            self.distances.addr.eq(Cat(walk.o.payload, scope.bank)),
            page_filter.distances.eq(self.distances.data),
            page_filter.i.valid.eq(issue),
            page_filter.i.payload.eq(walk.o.payload),
        ]
        for port in (walk.i_job, page_filter.i_job):
            m.d.comb += [port.valid.eq(start), port.payload.eq(self.i.payload)]
        m.d.comb += walk.limit.eq(page_filter.limit)

        page = delay(m, walk.o.payload, FILTER_CYCLES, name="page")
        ended = delay(m, end, FILTER_CYCLES, name="end")
        self._build_choice(m, queue.i.payload, page, ended, scope, page_filter)
        m.d.comb += queue.i.valid.eq(delay(m, issue, FILTER_CYCLES, name="issue") | ended)
        return m

    def _build_issue(self, m, start, walk, queue):
        """Send a page, or the query's end, down the filter: only what the queue has room for."""
        room = Signal(range(QUEUE_PAGES + 1), init=QUEUE_PAGES)
        closing = Signal()     # the end is on its way through the filter
        issue = Signal()
        end = Signal()
        taken = queue.o.valid & queue.o.ready
        m.d.comb += [
            walk.o.ready.eq(room != 0),
            issue.eq(walk.o.valid & walk.o.ready),
            end.eq(self.scanning & ~closing & walk.done & (room != 0)),
            self.i.ready.eq(~self.scanning),
        ]
        m.d.sync += [room.eq(room - (issue | end) + taken), closing.eq(closing | end)]
        with m.If(start):
            m.d.sync += self.scanning.eq(1)
        with m.Elif(queue.i.valid & queue.i.payload.end):
            m.d.sync += [self.scanning.eq(0), closing.eq(0)]
        return issue, end

    def _build_choice(self, m, choice, page, ended, scope, page_filter):
        config = self.config
        slot_bits = (PAGE_TOKENS - 1).bit_length()
        if config.code_source == "streamed":
            store_page = Cat(page, scope.bank)
        else:
            store_page = (scope.base_page + page)[:store_page_bits(config)]
        m.d.comb += [
            choice.end.eq(ended),
            choice.error.eq(scope.error),
            choice.beats.eq(scope.beats),
            choice.page.eq(page),
            choice.store_page.eq(store_page),
            choice.full.eq(page_filter.full),
            choice.coarse.eq(page_filter.coarse),
            choice.summary.eq(scope.summaries & (page < scope.visible[slot_bits:])),
        ]
