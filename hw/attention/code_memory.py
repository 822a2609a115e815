"""Codes and exponents on chip, for all contexts."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import code_write
from hw.attention.retrieval_layouts import (
    Strobe,
    check_config,
    code_line,
    exponent_pair,
    line_request,
    store_page_bits,
)
from hw.config import PAGE_TOKENS
from hw.sram import Sram

__all__ = ["CodeMemory"]


class CodeMemory(wiring.Component):
    """Holds the codes of all contexts in lines, and beside them the exponents of tokens and pages.

    **Latency**: 1 cycle from ``i`` to the first line; 1 cycle from ``i_code`` until what it wrote
    can be read; 1 cycle for exponents.

    **Throughput**: one line per cycle, one write per cycle, one token's and one page's exponents
    per cycle, all at once.

    **Numerics**: none, codes and exponents pass unchanged.

    **Errors**: none. ``error`` of a line is always NONE.

    Parameters
    ----------
    config : AttentionConfig
        With ``code_source`` "resident".

    Members
    -------
    i : ``In(Strobe(line_request(config)))``
        Lines to read. Only once the last line of the request before was seen on ``o``.
    o : ``Out(Strobe(code_line(config)))``
        Its lines, in order.
    i_code : ``In(stream.Signature(code_write(config)))``
        A new token's code and exponents; always ready.
    token_exponents : ``Out(ReadPort.Signature(...))`` of ``exponent_pair``
        Address: slot in the page, then page of the store.
    page_exponents : ``Out(ReadPort.Signature(...))`` of ``exponent_pair``
        Address: page of the store.
    """

    def __init__(self, config):
        self._config = check_config("CodeMemory", config)
        if config.code_source != "resident":
            raise ValueError(f"CodeMemory config.code_source must be 'resident', "
                             f"not {config.code_source!r}")
        page_bits = store_page_bits(config)
        slot_bits = (PAGE_TOKENS - 1).bit_length()
        pair = exponent_pair(config)
        super().__init__({
            "i": In(Strobe(line_request(config))),
            "o": Out(Strobe(code_line(config))),
            "i_code": In(stream.Signature(code_write(config))),
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
        lines = max(2, config.resident_tokens // config.lanes)
        pages = max(2, config.resident_tokens // PAGE_TOKENS)
        m.submodules.codes = codes = Sram(
            data.ArrayLayout(config.code_bits, config.lanes), depth=lines, granularity=1)
        m.submodules.tokens = tokens = Sram(exponent_pair(config), depth=pages * PAGE_TOKENS)
        m.submodules.pages = page_memory = Sram(exponent_pair(config), depth=pages)

        self._build_write(m, codes.write, tokens.write, page_memory.write)
        self._build_exponent_read(m, self.token_exponents, tokens.read)
        self._build_exponent_read(m, self.page_exponents, page_memory.read)
        self._build_line_read(m, codes.read)
        return m

    def _build_write(self, m, codes, tokens, pages):
        new = self.i_code.payload
        m.d.comb += [
            self.i_code.ready.eq(1),
            codes.en.eq(self.i_code.valid << new.lane),
            codes.addr.eq(new.line),
            tokens.en.eq(self.i_code.valid),
            tokens.addr.eq(Cat(new.lane, new.line)),
            tokens.data.keys.eq(new.keys),
            tokens.data.values.eq(new.values),
            pages.en.eq(self.i_code.valid),
            pages.addr.eq(new.page),
            pages.data.keys.eq(new.page_keys),
            pages.data.values.eq(new.page_values),
        ]
        m.d.comb += [codes.data[lane].eq(new.code) for lane in range(self.config.lanes)]

    def _build_exponent_read(self, m, port, memory_port):
        m.d.comb += [
            memory_port.en.eq(port.en),
            memory_port.addr.eq(port.addr),
            port.data.eq(memory_port.data),
        ]

    def _build_line_read(self, m, port):
        request = self.i.payload
        left = Signal.like(request.last_line)
        line = Signal.like(request.first_line)
        # The first line is read in the cycle of the request itself.
        m.d.comb += [
            port.en.eq(self.i.valid | (left != 0)),
            port.addr.eq(Mux(self.i.valid, request.first_line, line)),
            self.o.payload.codes.eq(port.data),
        ]
        m.d.sync += self.o.valid.eq(port.en)
        with m.If(self.i.valid):
            m.d.sync += [
                line.eq(request.first_line + 1),
                left.eq(request.last_line),
                self.o.payload.last.eq(request.last_line == 0),
            ]
        with m.Elif(left != 0):
            m.d.sync += [
                line.eq(line + 1),
                left.eq(left - 1),
                self.o.payload.last.eq(left == 1),
            ]
