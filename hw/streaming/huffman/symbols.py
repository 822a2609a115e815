"""From code words to the symbols that they stand for."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.checks import check_int
from hw.sram import Sram
from hw.streaming.huffman.geometry import LONGEST

__all__ = ["SymbolLookup"]


class SymbolLookup(wiring.Component):
    """Finds the element of a code word by its rank among all code words.

    There are memories for the symbols of K and of V, of the frame that is decoded and of the one
    whose tables are built.

    **Latency**: 3 cycles (`LATENCY`): code and offset; rank and memory; the choice of one of two.

    **Throughput**: an element per cycle; the pipeline never stops.

    **Numerics**: ``golden.streaming.huffman.decode_table``.

    **Errors**: none.

    Parameters
    ----------
    symbol_bits : int
        Width of the widest symbol: 2..8.

    Members
    -------
    window : ``In(12)``
        Bits that begin with a code word, the first in bit 0.
    length : ``In(range(13))``
        Length of the code word, not 0.
    offsets : ``In(ArrayLayout(symbol_bits, 12))``
        Of its code.
    is_value : ``In(1)``
        It belongs to a row of V.
    bank : ``In(1)``
        Of its frame.
    element : ``Out(signed(symbol_bits))``
    place_bank : ``In(1)``
        Frame whose symbols are placed.
    key, value : ``In({place_enable, rank, element})``
        A symbol of K, and of V.
    """

    LATENCY = 3

    def __init__(self, *, symbol_bits):
        self._symbol_bits = check_int(
            "SymbolLookup symbol_bits", symbol_bits, minimum=2, maximum=8)
        placed = data.StructLayout({
            "place_enable": 1, "rank": symbol_bits, "element": signed(symbol_bits)})
        super().__init__({
            "window": In(LONGEST), "length": In(range(LONGEST + 1)),
            "offsets": In(data.ArrayLayout(symbol_bits, LONGEST)),
            "is_value": In(1), "bank": In(1),
            "element": Out(signed(symbol_bits)),
            "place_bank": In(1), "key": In(placed), "value": In(placed),
        })

    @property
    def symbol_bits(self):
        return self._symbol_bits

    def elaborate(self, platform):
        m = Module()
        code, offset = Signal(self.symbol_bits), Signal(self.symbol_bits)
        lengths = range(1, LONGEST + 1)
        # Index 0 is no length.
        codes = Array([0, *(Cat(reversed(self.window[:length])) for length in lengths)])
        offsets = Array([0, *(self.offsets[length - 1] for length in lengths)])
        m.d.sync += [code.eq(codes[self.length]), offset.eq(offsets[self.length])]
        bank = delay(m, self.bank, 1, name="bank")
        is_value = delay(m, self.is_value, 2, name="is_value")

        found = []
        for name, placed in (("key", self.key), ("value", self.value)):
            m.submodules[name] = elements = Sram(
                signed(self.symbol_bits), depth=2 << self.symbol_bits)
            m.d.comb += [
                elements.write.en.eq(placed.place_enable),
                elements.write.addr.eq(Cat(placed.rank, self.place_bank)),
                elements.write.data.eq(placed.element),
                elements.read.en.eq(1),
                elements.read.addr.eq(Cat((code + offset)[:self.symbol_bits], bank)),
            ]
            found.append(elements.read.data)
        m.d.sync += self.element.eq(Mux(is_value, found[1], found[0]))
        return m
