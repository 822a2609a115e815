"""Lists the tokens of the pages that a query selected, with their exponents."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.priority import highest_bit
from hw.arith.rounding import delay
from hw.attention.layouts import Kind, selection_counts, token_item
from hw.attention.retrieval_layouts import (
    check_config,
    exponent_pair,
    page_choice,
    store_page_bits,
)
from hw.config import PAGE_TOKENS
from hw.stream import Queue

__all__ = ["Expander"]

QUEUE_TOKENS = 4    # covers the way to the exponents, to the queue and back
QUEUE_COUNTS = 2
SLOT_BITS = (PAGE_TOKENS - 1).bit_length()


class Expander(wiring.Component):
    """Fourth stage of retrieval: one item per selected token, and per page with skipped ones.

    Tokens come in descending order, the summary after its page's tokens, END at the end of a query.

    **Latency**: 2 cycles from ``i`` to the first item on ``o``; 1 from an end to ``o_counts``.

    **Throughput**: one item per cycle; a page without an item takes one cycle.

    **Numerics**: items in the order of docs/numerics.md section 5; weights as in section 11.

    **Errors**: none; the error of an end passes through to ``o_counts``.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(page_choice(config)))``
        Pages in descending order, then the end of a query.
    token_exponents, page_exponents : ``In(ReadPort.Signature(...))`` of ``exponent_pair``
        Of the code source.
    o : ``Out(stream.Signature(token_item(config)))``
        Items.
    o_counts : ``Out(stream.Signature(selection_counts(config)))``
        For each query, in order; may come before its END.
    bank_free : ``Out(1)``
        The last exponents of a query were asked for.
    """

    def __init__(self, config):
        self._config = check_config("Expander", config)
        page_bits = store_page_bits(config)
        pair = exponent_pair(config)
        super().__init__({
            "i": In(stream.Signature(page_choice(config))),
            "token_exponents": In(memory.ReadPort.Signature(
                addr_width=page_bits + SLOT_BITS, shape=pair)),
            "page_exponents": In(memory.ReadPort.Signature(addr_width=page_bits, shape=pair)),
            "o": Out(stream.Signature(token_item(config))),
            "o_counts": Out(stream.Signature(selection_counts(config))),
            "bank_free": Out(1),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.queue = queue = Queue(token_item(config), depth=QUEUE_TOKENS)
        m.submodules.counts = counts = Queue(selection_counts(config), depth=QUEUE_COUNTS)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        wiring.connect(m, counts.o, wiring.flipped(self.o_counts))

        issue = Signal()            # an item is on its way
        item = Signal(token_item(config))
        slot = Signal(SLOT_BITS)
        self._build_choice(m, issue, item, slot, counts.i.ready, queue.o)
        self._build_counts(m, issue, item.kind, counts.i)

        m.d.comb += [
            self.token_exponents.en.eq(issue),
            self.token_exponents.addr.eq(Cat(slot, self.i.payload.store_page)),
            self.page_exponents.en.eq(issue),
            self.page_exponents.addr.eq(self.i.payload.store_page),
            self.bank_free.eq(issue & (item.kind == Kind.END)),
        ]
        late = delay(m, item, 1, name="item")
        found = Mux(late.kind == Kind.SUMMARY,
                    self.page_exponents.data.as_value(), self.token_exponents.data.as_value())
        pair = Signal(exponent_pair(config))
        m.d.comb += [
            pair.eq(found),
            queue.i.valid.eq(delay(m, issue, 1, name="issued")),
            queue.i.payload.eq(late),
            queue.i.payload.keys.eq(pair.keys),
            queue.i.payload.values.eq(pair.values),
        ]
        return m

    def _build_choice(self, m, issue, item, slot, counts_ready, taken):
        """The next item of the page on ``i``, if there is room for it."""
        page = self.i.payload
        selected = Signal(PAGE_TOKENS)
        left = Signal(PAGE_TOKENS)
        given = Signal(PAGE_TOKENS)
        count = Signal(range(PAGE_TOKENS + 1))
        m.d.comb += [
            selected.eq(page.full | page.coarse),
            left.eq(selected & ~given),
        ]
        index, highest = highest_bit(left)
        is_token = left != 0
        has_summary = page.summary & ~selected.all()
        is_summary = ~is_token & has_summary

        room = Signal(range(QUEUE_TOKENS + 1), init=QUEUE_TOKENS)
        m.d.sync += room.eq(room - issue + (taken.valid & taken.ready))
        wanted = Mux(page.end, counts_ready, is_token | has_summary)
        last = page.end | is_summary | ((left == highest) & ~has_summary)
        m.d.comb += [
            issue.eq(self.i.valid & wanted & (room != 0)),
            self.i.ready.eq(last & (issue | ~(page.end | is_token | has_summary))),
            slot.eq(index),
            item.position.eq(Cat(slot, page.page)),
            item.weight.eq(Mux(is_summary, PAGE_TOKENS - count, 1)),
        ]
        with m.If(page.end):
            m.d.comb += [item.kind.eq(Kind.END), item.position.eq(0), item.weight.eq(0)]
        with m.Elif(is_summary):
            m.d.comb += item.kind.eq(Kind.SUMMARY)
        with m.Elif((page.full & highest) != 0):
            m.d.comb += item.kind.eq(Kind.FULL)
        with m.Else():
            m.d.comb += item.kind.eq(Kind.COARSE)

        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [given.eq(0), count.eq(0)]
        with m.Elif(issue):
            m.d.sync += [given.eq(given | highest), count.eq(count + 1)]

    def _build_counts(self, m, issue, kind, port):
        counters = {Kind.FULL: port.payload.full, Kind.COARSE: port.payload.coarse,
                    Kind.SUMMARY: port.payload.summaries}
        ending = issue & (kind == Kind.END)
        for counted, field in counters.items():
            counter = Signal(len(field), name=f"{counted.name.lower()}_count")
            m.d.comb += field.eq(counter)
            with m.If(ending):
                m.d.sync += counter.eq(0)
            with m.Elif(issue & (kind == counted)):
                m.d.sync += counter.eq(counter + 1)
        m.d.comb += [
            port.valid.eq(ending),
            port.payload.error.eq(self.i.payload.error),
            port.payload.beats.eq(self.i.payload.beats),
        ]
