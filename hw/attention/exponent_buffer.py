"""Exponents of streamed code lines, kept until their query has listed its tokens."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.extremum import Extremum
from hw.arith.rounding import delay
from hw.attention.retrieval_layouts import check_config, exponent_pair, store_page_bits
from hw.config import EXPONENT_BITS, PAGE_TOKENS
from hw.shared import Once
from hw.sram import Sram

__all__ = ["ExponentBuffer"]


class ExponentBuffer(wiring.Component):
    """Exponents of the lines that passed, per token and as the largest of each page, in two banks.

    **Latency**: readable 1 cycle after the line (tokens), 3 cycles (pages). Reads take 1 cycle.

    **Throughput**: one line, one token's and one page's exponents per cycle.

    **Numerics**: largest exponents of a page as in ``golden.summary``.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    valid : ``In(1)``
        A line passes.
    first : ``In(1)``
        In the cycle before the first line of a query.
    bank : ``In(1)``
        Bank of the query; taken with ``first``.
    exponents : ``In(ArrayLayout(exponent_pair(config), lanes))``
    token_exponents : ``Out(ReadPort.Signature(...))`` of ``exponent_pair``
        Address: slot in the page, page, bank.
    page_exponents : ``Out(ReadPort.Signature(...))`` of ``exponent_pair``
        Address: page, bank.
    """

    def __init__(self, config):
        self._config = check_config("ExponentBuffer", config)
        page_bits = store_page_bits(config)
        slot_bits = (PAGE_TOKENS - 1).bit_length()
        pair = exponent_pair(config)
        super().__init__({
            "valid": In(1),
            "first": In(1),
            "bank": In(1),
            "exponents": In(data.ArrayLayout(pair, config.lanes)),
            "token_exponents": Out(memory.ReadPort.Signature(
                addr_width=page_bits + slot_bits, shape=pair)),
            "page_exponents": Out(memory.ReadPort.Signature(addr_width=page_bits, shape=pair)),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        line_pages_log2 = (config.lanes // PAGE_TOKENS).bit_length() - 1
        line = Signal(config.page_bits - line_pages_log2)
        bank = Signal()
        with m.If(self.first):
            m.d.sync += [line.eq(0), bank.eq(self.bank)]
        with m.Elif(self.valid):
            m.d.sync += line.eq(line + 1)

        self._build_store(m, "tokens", self.exponents.as_value(), self.token_exponents,
                          self.valid, Cat(line, bank))
        largest, wait = self._build_largest(m)
        self._build_store(m, "pages", largest, self.page_exponents,
                          delay(m, self.valid, wait, name="valid"),
                          delay(m, Cat(line, bank), wait, name="address"))
        return m

    def _build_store(self, m, name, word, port, valid, address):
        """A memory with a line per word, read item by item."""
        item_bits = len(port.data.as_value())
        items = len(word) // item_bits
        place_bits = (items - 1).bit_length()
        m.submodules[name] = store = Sram(len(word), depth=1 << len(address))
        place = Signal(place_bits)
        m.d.comb += [
            store.write.en.eq(valid),
            store.write.addr.eq(address),
            store.write.data.eq(word),
            store.read.en.eq(port.en),
            store.read.addr.eq(port.addr[place_bits:]),
            port.data.eq(store.read.data.word_select(place, item_bits)),
        ]
        with m.If(port.en):
            m.d.sync += place.eq(port.addr)

    def _build_largest(self, m):
        """Largest exponents of each page of a line, and the latency of finding them."""
        item_bytes = self.config.exponent_bytes
        word = self.exponents.as_value()
        values = []
        for page in range(self.config.lanes // PAGE_TOKENS):
            for byte in range(item_bytes):
                tree = Once(Extremum(bits=EXPONENT_BITS, count=PAGE_TOKENS, largest=True))
                m.submodules[f"largest_{page}_{byte}"] = tree
                for slot in range(PAGE_TOKENS):
                    place = (page * PAGE_TOKENS + slot) * item_bytes + byte
                    m.d.comb += tree.i[slot].eq(word.word_select(place, EXPONENT_BITS))
                values.append(tree.o)
        return Cat(values), tree.latency
