"""Codes and exponents read from memory, line by line, for each query."""

from amaranth.hdl import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.exponent_buffer import ExponentBuffer
from hw.attention.line_reader import LineReader
from hw.attention.retrieval_layouts import (
    Strobe,
    check_config,
    code_line,
    exponent_pair,
    line_request,
    store_page_bits,
)
from hw.bus.read_port import ReadPort
from hw.config import PAGE_TOKENS

__all__ = ["CodeStream"]


class CodeStream(wiring.Component):
    """Codes of a context that lie in memory: reads all lines of a query and keeps their exponents.

    A line in memory: ``lanes`` codes, then the exponents of as many tokens (K, V), padded to whole
    beats. Lines of a context follow each other from ``address``, a multiple of ``memory_bytes``.

    **Latency**: from ``i`` to the first line 3 cycles, the memory's latency and a line's beats.

    **Throughput**: one line per ``code_line_beats`` cycles, one token's and one page's exponents
    per cycle.

    **Numerics**: codes pass unchanged; page exponents as in ``golden.summary``.

    **Errors**: BUS and SHORT, see `LineReader`.

    Parameters
    ----------
    config : AttentionConfig
        With ``code_source`` "streamed".

    Members
    -------
    i, o, token_exponents, page_exponents
        As those of `CodeMemory`.
    bus : ``Out(ReadPort(address_bits, memory_bytes))``
    """

    def __init__(self, config):
        self._config = check_config("CodeStream", config)
        if config.code_source != "streamed":
            raise ValueError(f"CodeStream config.code_source must be 'streamed', "
                             f"not {config.code_source!r}")
        page_bits = store_page_bits(config)
        slot_bits = (PAGE_TOKENS - 1).bit_length()
        pair = exponent_pair(config)
        super().__init__({
            "i": In(Strobe(line_request(config))),
            "o": Out(Strobe(code_line(config))),
            "token_exponents": Out(memory.ReadPort.Signature(
                addr_width=page_bits + slot_bits, shape=pair)),
            "page_exponents": Out(memory.ReadPort.Signature(addr_width=page_bits, shape=pair)),
            "bus": Out(ReadPort(config.address_bits, config.memory_bytes)),
        })

    @property
    def config(self):
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.reader = reader = LineReader(config)
        m.submodules.exponents = exponents = ExponentBuffer(config)
        wiring.connect(m, wiring.flipped(self.i), reader.i)
        wiring.connect(m, reader.bus, wiring.flipped(self.bus))
        wiring.connect(m, exponents.token_exponents, wiring.flipped(self.token_exponents))
        wiring.connect(m, exponents.page_exponents, wiring.flipped(self.page_exponents))

        line = reader.o.payload
        code_bits = config.lanes * config.code_bits
        exponent_bits = config.lanes * config.exponent_bytes * 8
        m.d.comb += [
            self.o.valid.eq(reader.o.valid),
            self.o.payload.codes.eq(line.data[:code_bits]),
            self.o.payload.last.eq(line.last),
            self.o.payload.error.eq(line.error),
            self.o.payload.beats.eq(line.beats),
            exponents.valid.eq(reader.o.valid),
            exponents.first.eq(self.i.valid),
            exponents.bank.eq(self.i.payload.bank),
            exponents.exponents.eq(line.data[code_bits:code_bits + exponent_bits]),
        ]
        return m
