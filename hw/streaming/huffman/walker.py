"""Follows the pages of an entropy-coded payload."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import PAGE_TOKENS, WIRE_FORMATS, StreamingConfig
from hw.stream import Queue
from hw.streaming.huffman.directory import HEAD_WORDS, UNIT_WORDS, Directory
from hw.streaming.huffman.geometry import (
    LANES,
    WORD_BITS,
    WORD_BYTES,
    check_coded,
    page_item,
    pages_held,
    payload_word,
)
from hw.streaming.huffman.router import WordRouter
from hw.streaming.layouts import chunk_begin
from hw.streaming.wire import (
    SMALLEST_PAGE_BYTES,
    UNIT_BYTES,
    element_bits,
    is_coded,
    largest_coded_page,
    table_bytes,
)

__all__ = ["SCALE_WORDS", "CodedWalker"]

SMALLEST_WORDS = SMALLEST_PAGE_BYTES // WORD_BYTES
DIRECTORY_WORDS = 2
SCALE_WORDS = HEAD_WORDS - DIRECTORY_WORDS


class _Page:
    """Registers and wires of a `CodedWalker`."""

    def __init__(self, owner):
        config = owner.config
        self.place = Signal(range(largest_coded_page(config.head_dim) // WORD_BYTES))
        self.last_table_word = Signal(range(2 * max(
            table_bytes(name) for name in config.formats) // WORD_BYTES))
        self.tokens_left = Signal(config.token_bits)
        self.tokens = Signal(range(PAGE_TOKENS + 1))
        self.is_first, self.is_last = Signal(), Signal()     # page of the frame
        self.is_busy = Signal()     # its directory is there, and not yet all of its words
        self.drops = Signal()       # it is given up
        self.is_cut, self.is_refused = Signal(), Signal()
        self.takes, self.has_room, self.ends, self.ends_frame = (
            Signal(), Signal(), Signal(), Signal())


class CodedWalker(wiring.Component):
    """Takes payloads apart: tables, scales, and the words of the lanes.

    Each page that is complete, and whose directory passes, becomes an item; each frame another. If
    the payload is over too early, or a directory is refused, the rest is dropped.

    **Latency**: 3 cycles from a page's last word to its item, if the page is not a small one.

    **Throughput**: a word per cycle. Of pages of less than 16 words behind the directory,
    the last word waits until the directory is read.

    **Numerics**: ``golden.streaming.payload.decode_payload``; section 4 of docs/wire_format.md.

    **Errors**: ``is_refused`` of an end: ``DIRECTORY``.

    Parameters
    ----------
    config : StreamingConfig
        With at least one entropy-coded format.

    Members
    -------
    i_begin : ``In(stream.Signature(chunk_begin(config)))``
        A frame of an entropy-coded format.
    i : ``In(stream.Signature(payload_word()))``
        Its payload.
    may_begin : ``In(1)``
        The tables of the frame before are not needed any more.
    begins : ``Out(1)``
        A frame begins.
    last_symbol : ``Out(huffman_bits)``
        2**b - 1 of the frame.
    table_enable : ``Out(2)``
        ``word`` is one of the table of K, or of V.
    scale_enable : ``Out(1)``
        ``word`` has scales.
    scale_index : ``Out(range(8 * pages))``
        Which of a page; page.
    word : ``Out(64)``
    lane_enable : ``Out(8)``
        Write ``lane_word`` to this lane.
    lane_page : ``Out(range(pages))``
        Into this page.
    lane_word : ``Out(64)``
    opens : ``Out(1)``
        The lane words that follow are of a new page.
    frees : ``In(1)``
        A page is not needed any more; they are in order.
    o : ``Out(stream.Signature(page_item(config)))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_coded("CodedWalker", config)
        pages = pages_held(config.head_dim)
        super().__init__({
            "i_begin": In(stream.Signature(chunk_begin(config))),
            "i": In(stream.Signature(payload_word())),
            "may_begin": In(1),
            "begins": Out(1), "last_symbol": Out(config.huffman_bits),
            "table_enable": Out(2), "scale_enable": Out(1),
            "scale_index": Out(range(SCALE_WORDS * pages)), "word": Out(WORD_BITS),
            "lane_enable": Out(LANES), "lane_page": Out(range(pages)), "lane_word": Out(WORD_BITS),
            "opens": Out(1),
            "frees": In(1),
            "o": Out(stream.Signature(page_item(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.directory = directory = Directory(self.config)
        m.submodules.router = router = WordRouter(self.config)
        # A place for each page, and for ends of frames that were cut.
        m.submodules.items = items = Queue(
            page_item(self.config), depth=2 * pages_held(self.config.head_dim))
        wiring.connect(m, items.o, wiring.flipped(self.o))
        page = _Page(self)
        m.d.comb += page.takes.eq(self.i.valid & self.i.ready & ~self.i.payload.cut)

        with m.FSM(name="state"):
            with m.State("IDLE"):
                self._begin(m, page, directory)
            with m.State("TABLES"):
                self._take_tables(m, page)
            with m.State("SCALES"):
                self._take_scales(m, page)
            with m.State("DIRECTORY"):
                self._take_directory(m, page, directory)
            with m.State("WORDS"):
                self._take_words(m, page, directory, router)
            with m.State("DRAIN"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid & self.i.payload.last):
                    m.next = "END"
            with m.State("END"):
                m.d.comb += page.ends_frame.eq(~page.is_busy | (page.drops & router.is_empty))
                with m.If(page.ends_frame & items.i.ready):
                    m.d.sync += [page.is_busy.eq(0), page.drops.eq(0)]
                    m.next = "IDLE"
        self._route(m, page, directory, router, items)
        self._deliver(m, page, directory, router, items)
        m.d.comb += self.word.eq(self.i.payload.data)
        return m

    def _begin(self, m, page, directory):
        begin = self.i_begin
        names = [name for name in self.config.formats if is_coded(name)]
        m.d.comb += [
            begin.ready.eq(self.may_begin),
            self.begins.eq(begin.valid & begin.ready),
            directory.begins.eq(self.begins),
        ]
        unit_beats_log2 = (UNIT_BYTES // self.config.bus_bytes - 1).bit_length()
        units = begin.payload.payload_beats >> unit_beats_log2
        with m.Switch(begin.payload.format):
            for name in names:
                with m.Case(WIRE_FORMATS[name]):
                    m.d.comb += directory.units.eq(units - 2 * table_bytes(name) // UNIT_BYTES)
                    with m.If(self.begins):
                        m.d.sync += [
                            self.last_symbol.eq((1 << element_bits(name)) - 1),
                            page.last_table_word.eq(2 * table_bytes(name) // WORD_BYTES - 1),
                        ]
        with m.If(self.begins):
            m.d.sync += [
                page.place.eq(0), page.tokens_left.eq(begin.payload.tokens),
                page.is_first.eq(1), page.is_cut.eq(0), page.is_refused.eq(0),
            ]
            m.next = "TABLES"

    def _take_tables(self, m, page):
        m.d.comb += self.i.ready.eq(1)
        with m.If(page.takes):
            is_value = page.place > (page.last_table_word >> 1)
            m.d.comb += self.table_enable.eq(Cat(~is_value, is_value))
            m.d.sync += page.place.eq(page.place + 1)
            with m.If(page.place == page.last_table_word):
                m.d.sync += page.place.eq(0)
                m.next = "SCALES"
        self._end_early(m, page, drops=0)

    def _take_scales(self, m, page):
        m.d.comb += [
            self.i.ready.eq(page.has_room | self.i.payload.cut),
            self.scale_enable.eq(page.takes),
        ]
        with m.If(page.takes):
            m.d.sync += page.place.eq(page.place + 1)
            with m.If(page.place == SCALE_WORDS - 1):
                m.next = "DIRECTORY"
        self._end_early(m, page, drops=0)

    def _take_directory(self, m, page, directory):
        is_second = page.place[0]
        m.d.comb += [
            # There is one set of lengths: that of the page before may still be in use.
            self.i.ready.eq(is_second | ~page.is_busy | self.i.payload.cut),
            directory.enable.eq(page.takes),
            self.opens.eq(page.takes & ~is_second),
        ]
        with m.If(page.takes):
            m.d.sync += page.place.eq(page.place + 1)
            with m.If(is_second):
                m.next = "WORDS"
        with m.If(self.opens):
            is_last = page.tokens_left <= PAGE_TOKENS
            m.d.sync += [
                page.is_busy.eq(1),
                page.is_last.eq(is_last),
                page.tokens.eq(Mux(is_last, page.tokens_left, PAGE_TOKENS)),
                page.tokens_left.eq(page.tokens_left - PAGE_TOKENS),
            ]
        self._end_early(m, page, drops=is_second | self.opens)

    def _take_words(self, m, page, directory, router):
        is_refused = directory.is_done & directory.is_refused
        # Only the last word of the smallest page needs to be told from others so early.
        m.d.comb += [
            page.ends.eq(directory.is_done & (page.place == Cat(
                Const(UNIT_WORDS - 1, UNIT_WORDS.bit_length() - 1), directory.last_unit))),
            self.i.ready.eq(self.i.payload.cut | (router.i.ready & Mux(
                directory.is_done, ~is_refused, page.place < SMALLEST_WORDS - 1))),
            router.i.valid.eq(page.takes),
        ]
        with m.If(page.takes):
            m.d.sync += page.place.eq(page.place + 1)
        self._end_early(m, page, drops=1)
        with m.If(is_refused & ~self.i.payload.cut):
            m.d.sync += [page.drops.eq(1), page.is_refused.eq(1)]
            m.next = "DRAIN"
        with m.If(page.takes & page.ends):
            m.d.sync += [page.place.eq(0), page.drops.eq(0), page.is_cut.eq(0)]
            m.next = "SCALES"
            with m.If(page.is_last):
                m.next = "END"

    def _end_early(self, m, page, *, drops):
        """The payload is over; ``drops``: with a page that is not complete."""
        with m.If(self.i.valid & self.i.ready & self.i.payload.last):
            m.d.sync += [page.is_cut.eq(1), page.drops.eq(drops)]
            m.next = "END"

    def _route(self, m, page, directory, router, items):
        m.d.comb += [
            directory.is_first.eq(self.opens),
            directory.word.eq(self.word),
            directory.is_last_page.eq(page.is_last),
            router.opens.eq(self.opens),
            router.i.payload.data.eq(self.word),
            router.i.payload.last.eq(page.ends),
            router.may_route.eq(directory.is_done & ~directory.is_refused & items.i.ready),
            router.ends.eq(directory.ends),
            router.discards.eq(page.drops),
            self.lane_enable.eq(router.write_enable),
            self.lane_word.eq(router.word),
        ]

    def _deliver(self, m, page, directory, router, items):
        """Count pages, and tell of them."""
        pages = pages_held(self.config.head_dim)
        held, item = Signal(range(pages + 1)), items.i.payload
        m.d.comb += [
            page.has_room.eq(held + page.is_busy < pages),
            self.scale_index.eq(Cat(
                page.place[:(SCALE_WORDS - 1).bit_length()],
                (self.lane_page + page.is_busy)[:len(self.lane_page)])),
            items.i.valid.eq(router.closes | page.ends_frame),
            item.bits.eq(directory.bits),
            item.tokens.eq(page.tokens),
            item.is_first.eq(page.is_first),
            item.is_end.eq(page.ends_frame),
            item.is_cut.eq(page.is_cut),
            item.is_refused.eq(page.is_refused),
        ]
        m.d.sync += [
            held.eq(held + router.closes - self.frees),
            self.lane_page.eq(self.lane_page + router.closes),
        ]
        with m.If(router.closes):
            m.d.sync += [page.is_busy.eq(0), page.is_first.eq(0)]
