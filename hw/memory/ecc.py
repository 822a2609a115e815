"""SEC-DED code of lines on their way to and from DRAM."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.memory.ecc_code import CHECK_BITS, COLUMNS, DATA_BITS, ROWS
from hw.memory.layouts import LINE_BITS, stored_line
from hw.stream import SkidBuffer

__all__ = ["LineDecoder", "LineEncoder", "WordStatus", "decoded_line", "plain_line"]

WORDS = LINE_BITS // DATA_BITS


class WordStatus(enum.Enum, shape=2):
    """What the decoder says of a word."""

    CLEAN = 0
    CORRECTED = 1
    UNCORRECTABLE = 2


def plain_line() -> data.StructLayout:
    """A line without check bits, and what is stored beside it."""
    return data.StructLayout({"data": LINE_BITS, "poison": 1, "meta": 2})


def decoded_line() -> data.StructLayout:
    """A corrected line. ``poison`` is that of memory, or raised for a word beyond correction;
    ``corrected`` counts words."""
    return data.StructLayout({
        "data": LINE_BITS, "poison": 1, "meta": 2,
        "status": data.ArrayLayout(WordStatus, WORDS),
        "corrected": range(WORDS + 1), "is_uncorrectable": 1})


def _parities(word):
    """Check bits of a word."""
    return Cat((word & Const(mask, DATA_BITS)).xor() for mask in ROWS)


class LineEncoder(wiring.Component):
    """Gives each word of a line its check bits.

    **Latency**: 2 cycles.

    **Throughput**: 1 line per cycle.

    **Numerics**: check bits equal `golden.memory.ecc.encode_line`; all else passes unchanged.

    **Errors**: none.

    Members
    -------
    i : ``In(stream.Signature(plain_line()))``
    o : ``Out(stream.Signature(stored_line()))``
    """

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(plain_line())),
            "o": Out(stream.Signature(stored_line())),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.last = last = SkidBuffer(stored_line())
        wiring.connect(m, last.o, wiring.flipped(self.o))
        coded, line = last.i.payload, self.i.payload
        m.d.comb += self.i.ready.eq(last.i.ready)
        with m.If(last.i.ready):
            m.d.sync += [
                last.i.valid.eq(self.i.valid),
                coded.data.eq(line.data),
                coded.check.eq(Cat(_parities(line.data.word_select(word, DATA_BITS))
                                   for word in range(WORDS))),
                coded.poison.eq(line.poison),
                coded.meta.eq(line.meta),
            ]
        return m


class LineDecoder(wiring.Component):
    """Corrects the words of a line, and poisons a line with a word beyond correction.

    Registers hold the syndromes, then the corrected words with their status, then the counts.

    **Latency**: 4 cycles.

    **Throughput**: 1 line per cycle.

    **Numerics**: data and status equal `golden.memory.ecc.decode_line`.

    **Errors**: ``status`` of each word, ``corrected``, ``is_uncorrectable``, beside the line. Three
    errors in a word may look like one.

    Members
    -------
    i : ``In(stream.Signature(stored_line()))``
    o : ``Out(stream.Signature(decoded_line()))``
    """

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(stored_line())),
            "o": Out(stream.Signature(decoded_line())),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.last = last = SkidBuffer(decoded_line())
        wiring.connect(m, last.o, wiring.flipped(self.o))
        step = last.i.ready
        m.d.comb += self.i.ready.eq(step)
        valid = Signal(2)
        with m.If(step):
            m.d.sync += Cat(valid, last.i.valid).eq(Cat(self.i.valid, valid))
        read, syndromes = self._find_syndromes(m, step)
        fixed = self._correct(m, step, read, syndromes)
        self._count(m, step, fixed, last.i.payload)
        return m

    def _find_syndromes(self, m, step):
        read = Signal(plain_line())
        syndromes = Signal(data.ArrayLayout(CHECK_BITS, WORDS))
        line = self.i.payload
        with m.If(step):
            m.d.sync += [
                read.data.eq(line.data), read.poison.eq(line.poison), read.meta.eq(line.meta)]
            for word in range(WORDS):
                m.d.sync += syndromes[word].eq(
                    _parities(line.data.word_select(word, DATA_BITS))
                    ^ line.check.word_select(word, CHECK_BITS))
        return read, syndromes

    def _correct(self, m, step, read, syndromes):
        fixed = Signal(decoded_line())
        with m.If(step):
            m.d.sync += [fixed.poison.eq(read.poison), fixed.meta.eq(read.meta)]
            for word in range(WORDS):
                syndrome = syndromes[word]
                flips = Cat(syndrome == column for column in COLUMNS[:DATA_BITS])
                m.d.sync += [
                    fixed.data.word_select(word, DATA_BITS).eq(
                        read.data.word_select(word, DATA_BITS) ^ flips),
                    fixed.status[word].eq(WordStatus.UNCORRECTABLE),
                ]
                with m.If(syndrome == 0):
                    m.d.sync += fixed.status[word].eq(WordStatus.CLEAN)
                with m.Elif(syndrome.matches(*COLUMNS)):
                    m.d.sync += fixed.status[word].eq(WordStatus.CORRECTED)
        return fixed

    def _count(self, m, step, fixed, counted):
        is_corrected = [fixed.status[word] == WordStatus.CORRECTED for word in range(WORDS)]
        is_lost = Cat(fixed.status[word] == WordStatus.UNCORRECTABLE
                      for word in range(WORDS)).any()
        with m.If(step):
            m.d.sync += [
                counted.eq(fixed),
                counted.corrected.eq(sum(is_corrected)),
                counted.is_uncorrectable.eq(is_lost),
                counted.poison.eq(fixed.poison | is_lost),
            ]
