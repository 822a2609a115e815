"""Finds the pages of a chunk."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import PAGE_TOKENS, StreamingConfig
from hw.sram import Sram
from hw.streaming.checks import check_config
from hw.streaming.layouts import placement

__all__ = ["PAGE_BITS", "PageFinder", "page_entry", "page_place"]

PAGE_BITS = 24
HALF_BITS = 16  # of a stride: what one multiplication takes
LAST_STEP = 7
SLOT_BITS = (PAGE_TOKENS - 1).bit_length()


def page_entry(config: StreamingConfig) -> data.StructLayout:
    """An entry of the block table."""
    return data.StructLayout({"index": config.table_bits, "page": PAGE_BITS})


def page_place(config: StreamingConfig) -> data.StructLayout:
    """Where a page of a chunk lies. A place with a ``fault`` must not be written: no memory has
    it, as the block table has no such entry or the address exceeds its bits."""
    place = data.StructLayout({"address": config.address_bits, "fault": 1})
    given = placement(config)
    return data.StructLayout({
        "key": place, "value": place, "exponent": place,
        "slots_less_one": SLOT_BITS,   # tokens in the page, less one
        "last": 1,                     # of the chunk
        **{name: given[name].shape for name in ("row_stride", "has_exponents", "window_mask")},
    })


class PageFinder(wiring.Component):
    """Block table, and the addresses of a page from its number.

    One multiplication of 24 x 16 bits per cycle, four for a page.

    **Latency**: 8 cycles from a placement, or from the page before being taken, to ``o``.

    **Throughput**: a page in 9 cycles; the rows of a full page take 32 at least.

    **Numerics**: ``golden.streaming.writer.Placement``, in enough bits that nothing wraps.

    **Errors**: ``fault`` of a place.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_entry : ``In(stream.Signature(page_entry(config)))``
        Sets an entry of the block table; always taken. Not one that a chunk under way uses.
    i : ``In(stream.Signature(placement(config)))``
        A chunk; taken with its last page. Has a token at least.
    o : ``Out(stream.Signature(page_place(config)))``
        Its pages in order.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("PageFinder", config)
        super().__init__({
            "i_entry": In(stream.Signature(page_entry(config))),
            "i": In(stream.Signature(placement(config))),
            "o": Out(stream.Signature(page_place(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, chunk, place = self.config, self.i.payload, self.o.payload
        number = Signal(config.token_bits)  # of the page in its chunk
        step = Signal(range(LAST_STEP + 1))
        with m.If(self.o.valid):
            with m.If(self.o.ready):
                m.d.sync += [
                    self.o.valid.eq(0), step.eq(0), number.eq(Mux(place.last, 0, number + 1))]
        with m.Elif(self.i.valid):
            m.d.sync += [step.eq(step + 1), self.o.valid.eq(step == LAST_STEP)]

        page, is_missing = self._look_up(m, chunk.table_index + number, step)
        total = self._multiply(m, page, step)
        last_token = Signal(config.token_bits)
        m.d.comb += [
            last_token.eq(chunk.tokens - 1),
            self.i.ready.eq(self.o.valid & self.o.ready & place.last),
        ]
        with m.If(step == 5):
            m.d.sync += [
                *_place(place.key, chunk.key_base, total, is_missing),
                *_place(place.value, chunk.value_base, total, is_missing),
                *(place[name].eq(chunk[name])
                  for name in ("row_stride", "has_exponents", "window_mask")),
                place.last.eq(number == last_token >> SLOT_BITS),
            ]
        with m.If(step == LAST_STEP):
            m.d.sync += [
                *_place(place.exponent, chunk.exponent_base, total, is_missing),
                place.slots_less_one.eq(Mux(place.last, last_token, PAGE_TOKENS - 1)),
            ]
        return m

    def _look_up(self, m, index, step):
        """Number of the page, from the cycle after step 0, and whether there is none."""
        config = self.config
        m.submodules.table = table = Sram(PAGE_BITS, depth=max(2, config.table_pages))
        is_missing = Signal()
        m.d.comb += [
            self.i_entry.ready.eq(1),
            table.write.en.eq(self.i_entry.valid),
            table.write.addr.eq(self.i_entry.payload.index),
            table.write.data.eq(self.i_entry.payload.page),
            table.read.en.eq((step == 0) & (index < config.table_pages)),
            table.read.addr.eq(index),
        ]
        with m.If(step == 0):
            m.d.sync += is_missing.eq(index >= config.table_pages)
        return table.read.data, is_missing

    def _multiply(self, m, page, step):
        """Products of the page with both strides, by halves: at step 5, and at the last one.

        Each half is a factor in a step, a product in the next, and summed in the one after.
        """
        chunk = self.i.payload
        number, factor = Signal(PAGE_BITS), Signal(HALF_BITS)
        product = Signal(PAGE_BITS + HALF_BITS)
        total = Signal(PAGE_BITS + 2 * HALF_BITS)
        m.d.sync += [number.eq(page), product.eq(number * factor)]
        with m.Switch(step):
            for first, stride in ((1, chunk.page_stride), (3, chunk.exponent_stride)):
                with m.Case(first):
                    m.d.sync += factor.eq(stride)
                with m.Case(first + 1):
                    m.d.sync += factor.eq(stride >> HALF_BITS)
        with m.Switch(step):
            with m.Case(3, 5):
                m.d.sync += total.eq(product)
            with m.Case(4, 6):
                m.d.sync += total.eq(total + (product << HALF_BITS))
        return total


def _place(place, base, offset, is_missing):
    """Statements that set a place to the sum of a base and an offset."""
    address_bits = len(place.address)
    total = base + offset[:address_bits]
    return [
        place.address.eq(total),
        place.fault.eq(is_missing | total[-1] | offset[address_bits:].any()),
    ]
