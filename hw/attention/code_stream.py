"""Codes and exponents read from memory, line by line, for each query."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.extremum import Extremum
from hw.arith.rounding import delay
from hw.attention.layouts import Error
from hw.attention.retrieval_layouts import (
    Strobe,
    check_config,
    code_line,
    exponent_pair,
    line_request,
    store_page_bits,
)
from hw.bus.read_port import ReadPort
from hw.config import EXPONENT_BITS, PAGE_TOKENS
from hw.shared import Once
from hw.sram import Sram

__all__ = ["CodeStream", "ExponentBuffer", "LineReader"]

BURST_BYTES = 4096      # no burst crosses a multiple of this
BURST_BEATS = 256
BURSTS_OPEN = 4         # bursts asked for and not answered: rows of other queries want the bus too


class LineReader(wiring.Component):
    """Reads a run of code lines as bursts, and gathers their beats.

    **Latency**: 2 cycles from ``i`` to the first burst, 1 cycle from a line's last beat to ``o``.

    **Throughput**: one beat per cycle; up to 4 bursts are open.

    **Numerics**: none.

    **Errors**: an error response is noted (BUS) and the run goes on; a burst whose ``last`` is not
    where it should be (SHORT) ends it: when all bursts asked for have ended, one more line, without
    meaning, closes the run. The first error is told with the last line.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(Strobe(line_request(config)))``
        Lines to read, at least one; only after the last line of the request before.
    bus : ``Out(ReadPort(address_bits, memory_bytes))``
    o : ``Out(Strobe(StructLayout({"data", "last", "error", "beats"})))``
        ``data`` is a line as it lies in memory; ``last``, ``error`` and ``beats`` as in `code_line`.
    """

    def __init__(self, config):
        self._config = check_config("LineReader", config)
        line = code_line(config)
        super().__init__({
            "i": In(Strobe(line_request(config))),
            "bus": Out(ReadPort(config.address_bits, config.memory_bytes)),
            "o": Out(Strobe(data.StructLayout({
                "data": config.code_line_bytes * 8,
                "last": 1, "error": Error, "beats": line["beats"].shape}))),
        })

    @property
    def config(self):
        return self._config

    @property
    def burst_beats(self):
        """Beats of a whole burst; bursts end at multiples of as many beats."""
        return min(BURST_BYTES // self.config.memory_bytes, BURST_BEATS)

    @property
    def beats_bits(self):
        """Width of a number of beats of a whole context."""
        return (self.config.max_lines * self.config.code_line_beats).bit_length()

    def elaborate(self, platform):
        m = Module()
        failed = Signal()
        open_bursts = Signal(range(BURSTS_OPEN + 1))
        asked = self._build_ask(m, failed, open_bursts)
        beat = self.bus.r.valid
        last = self.bus.r.payload.last
        m.d.comb += self.bus.r.ready.eq(1)
        m.d.sync += open_bursts.eq(open_bursts + asked - (beat & last))
        self._build_gather(m, failed, open_bursts)
        return m

    def _build_ask(self, m, failed, open_bursts):
        """Ask for the run burst by burst; return a strobe for each."""
        ar = self.bus.ar
        beat_bits = (self.config.memory_bytes - 1).bit_length()
        place_bits = (self.burst_beats - 1).bit_length()
        address = Signal(self.config.address_bits - beat_bits)  # in beats
        left = Signal(self.beats_bits)
        to_boundary = self.burst_beats - address[:place_bits]
        beats = Mux(left < to_boundary, left, to_boundary)[:place_bits + 1]
        asked = Signal()
        m.d.comb += asked.eq((left != 0) & ~failed & (open_bursts != BURSTS_OPEN)
                             & (~ar.valid | ar.ready))
        with m.If(ar.ready):
            m.d.sync += ar.valid.eq(0)
        with m.If(self.i.valid):
            m.d.sync += [
                address.eq(self.i.payload.address >> beat_bits),
                left.eq(self._total_beats()),
            ]
        with m.Elif(asked):
            m.d.sync += [
                ar.valid.eq(1),
                ar.payload.address.eq(address << beat_bits),
                ar.payload.length.eq(beats - 1),
                address.eq(address + beats),
                left.eq(left - beats),
            ]
        with m.Elif(failed):
            m.d.sync += left.eq(0)
        return asked

    def _total_beats(self):
        """Beats of the run that is requested."""
        beats = self.config.code_line_beats
        return self.i.payload.last_line * beats + beats

    def _build_gather(self, m, failed, open_bursts):
        config = self.config
        r = self.bus.r
        out = self.o.payload
        place_bits = (self.burst_beats - 1).bit_length()
        place = Signal(place_bits)              # of the next beat, from a burst boundary
        left = Signal(self.beats_bits)
        index = Signal(range(config.code_line_beats))
        line_ends = index == config.code_line_beats - 1
        misplaced = r.payload.last != ((place == self.burst_beats - 1) | (left == 1))
        short = r.valid & ~failed & misplaced
        drained = failed & (open_bursts == 0)   # nothing asked for is still to come

        m.d.sync += [
            self.o.valid.eq((r.valid & ~failed & ~misplaced & line_ends) | drained),
            out.last.eq((left == 1) | drained),
        ]
        with m.If(r.valid):
            m.d.sync += [
                out.data.word_select(index, config.memory_bytes * 8).eq(r.payload.data),
                out.beats.eq(out.beats + 1),
                place.eq(place + 1),
                left.eq(left - 1),
                index.eq(Mux(line_ends, 0, index + 1)),
            ]
            with m.If(out.error == Error.NONE):
                with m.If(r.payload.response[1]):
                    m.d.sync += out.error.eq(Error.BUS)
                with m.Elif(short):
                    m.d.sync += out.error.eq(Error.SHORT)
        with m.If(short):
            m.d.sync += failed.eq(1)
        with m.Elif(drained):
            m.d.sync += failed.eq(0)
        with m.If(self.i.valid):
            beat_bits = (config.memory_bytes - 1).bit_length()
            m.d.sync += [
                place.eq(self.i.payload.address >> beat_bits),
                left.eq(self._total_beats()),
                index.eq(0),
                out.error.eq(Error.NONE),
                out.beats.eq(0),
            ]


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
        line_bits = config.page_bits - (config.lanes // PAGE_TOKENS).bit_length() + 1
        line = Signal(line_bits)
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


class CodeStream(wiring.Component):
    """Codes of a context that lie in memory: reads all lines of a query and keeps their exponents.

    A line in memory: ``lanes`` codes, then the exponents of as many tokens (K, V), padded to whole
    beats. Lines of a context follow each other from ``address``, a multiple of ``memory_bytes``.

    **Latency**: 3 cycles, the memory's latency and the beats of a line from ``i`` to the first line.

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
