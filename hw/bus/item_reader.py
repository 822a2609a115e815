"""Reads runs of small items from memory."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.axi4 import Response
from hw.bus.read_port import ReadPort
from hw.checks import check_int
from hw.stream import Queue
from hw.stream.width import Downsizer, Upsizer

__all__ = ["LINE_BYTES", "ItemReader"]

LINE_BYTES = 64
LINES = 4  # asked for ahead


class ItemReader(wiring.Component):
    """Reads ``items`` items of a fixed size from an address that is a multiple of 64.

    Memory is read in lines of 64 bytes, up to 4 ahead; what is left of the last one is dropped.

    **Latency**: 1 cycle from ``i`` to ``bus.ar``; from the beat that completes an item to ``o``
    2 cycles (1 if the item is as wide as the bus, or narrower).

    **Throughput**: a beat of the bus, or an item, per cycle within a run, while 4 lines hide the
    memory's latency. The next run begins when the last line of the one before has been taken.

    **Numerics**: none, the data pass unchanged.

    **Errors**: ``error`` of an item with a beat whose response was not OKAY.

    Parameters
    ----------
    address_bits : int
        Width of a byte address.
    data_bytes : int
        Width of the bus: a power of two up to 64.
    item_bytes : int
        Size of an item: a power of two up to 64.

    Members
    -------
    i : ``In(stream)`` of ``address``, ``items``
        A run, of at least one item.
    o : ``Out(stream)`` of ``data``, ``error``, ``last``
    bus : ``Out(ReadPort)``
    """

    def __init__(self, *, address_bits, data_bytes, item_bytes):
        self._address_bits = check_int("ItemReader address_bits", address_bits, minimum=7)
        for name, value in (("data_bytes", data_bytes), ("item_bytes", item_bytes)):
            check_int(f"ItemReader {name}", value, minimum=1, maximum=LINE_BYTES)
            if value & (value - 1):
                raise ValueError(f"ItemReader {name} must be a power of two, not {value!r}")
        self._data_bytes, self._item_bytes = data_bytes, item_bytes
        super().__init__({
            "i": In(stream.Signature(data.StructLayout({"address": address_bits, "items": 16}))),
            "o": Out(stream.Signature(data.StructLayout({
                "data": 8 * item_bytes, "error": 1, "last": 1}))),
            "bus": Out(ReadPort(address_bits, data_bytes)),
        })

    @property
    def address_bits(self):
        return self._address_bits

    @property
    def data_bytes(self):
        return self._data_bytes

    @property
    def item_bytes(self):
        return self._item_bytes

    def elaborate(self, platform):
        m = Module()
        items = self._assemble(m)
        line_items = LINE_BYTES // self.item_bytes
        left = Signal(16)                 # items to deliver
        lines = Signal(16)                # lines to ask for
        place = Signal(range(line_items))  # of the item in its line
        held = Signal(range(LINES + 1))   # lines asked for and not yet taken
        address = Signal(self.address_bits)
        busy, line_taken = Signal(), Signal()
        ar = self.bus.ar
        m.d.comb += [
            self.i.ready.eq(~busy),
            ar.valid.eq(lines.any() & (held != LINES)),
            ar.payload.address.eq(address),
            ar.payload.length.eq(LINE_BYTES // self.data_bytes - 1),
            self.o.valid.eq(items.valid & left.any()),
            self.o.payload.data.eq(items.payload.data),
            self.o.payload.error.eq(items.payload.error),
            self.o.payload.last.eq(left == 1),
            items.ready.eq(self.o.ready | ~left.any()),
            line_taken.eq(items.valid & items.ready & (place == line_items - 1)),
        ]
        m.d.sync += held.eq(held + (ar.valid & ar.ready) - line_taken)
        with m.If(ar.valid & ar.ready):
            m.d.sync += [address.eq(address + LINE_BYTES), lines.eq(lines - 1)]
        with m.If(items.valid & items.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(left.any()):
                m.d.sync += left.eq(left - 1)
            with m.If(line_taken & ~lines.any() & (held == 1)):
                m.d.sync += busy.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                busy.eq(1),
                left.eq(self.i.payload.items),
                lines.eq((self.i.payload.items + (line_items - 1)) // line_items),
                address.eq(self.i.payload.address),
            ]
        return m

    def _assemble(self, m):
        """The bus's beats as a stream of items. There is room for all that was asked for."""
        beats = LINE_BYTES // self.data_bytes
        width = 8 * self.data_bytes + 1
        m.submodules.beats = queue = Queue(width, depth=LINES * beats)
        m.d.comb += [
            self.bus.r.ready.eq(1),
            queue.i.valid.eq(self.bus.r.valid),
            queue.i.payload.eq(Cat(self.bus.r.payload.data,
                                   self.bus.r.payload.response != Response.OKAY)),
        ]
        items = stream.Signature(
            data.StructLayout({"data": 8 * self.item_bytes, "error": 1})).create()
        if self.item_bytes > self.data_bytes:
            ratio = self.item_bytes // self.data_bytes
            m.submodules.width = gather = Upsizer(in_bits=width, ratio=ratio)
            words = [gather.o.payload.data.word_select(index, width) for index in range(ratio)]
            m.d.comb += [
                gather.i.valid.eq(queue.o.valid),
                gather.i.payload.data.eq(queue.o.payload),
                queue.o.ready.eq(gather.i.ready),
                items.valid.eq(gather.o.valid),
                items.payload.data.eq(Cat(word[:-1] for word in words)),
                items.payload.error.eq(Cat(word[-1] for word in words).any()),
                gather.o.ready.eq(items.ready),
            ]
        else:
            ratio = self.data_bytes // self.item_bytes
            item_bits = 8 * self.item_bytes
            m.submodules.width = split = Downsizer(out_bits=item_bits + 1, ratio=ratio)
            error = queue.o.payload[-1]
            m.d.comb += [
                split.i.valid.eq(queue.o.valid),
                split.i.payload.keep.eq(~0),
                split.i.payload.data.eq(Cat(
                    Cat(queue.o.payload.word_select(index, item_bits), error)
                    for index in range(ratio))),
                queue.o.ready.eq(split.i.ready),
                items.valid.eq(split.o.valid),
                items.payload.eq(split.o.payload.data),
                split.o.ready.eq(items.ready),
            ]
        return items
