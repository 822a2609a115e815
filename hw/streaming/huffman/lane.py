"""One sub-stream: its words, and a code word of it per cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.checks import check_int
from hw.sram import Sram
from hw.streaming.huffman.geometry import (
    LONGEST,
    WORD_BITS,
    code_table,
    pages_held,
    stream_bits,
)

__all__ = ["Lane"]

_PART_BITS = 16
_PARTS_AHEAD = 3  # hold the window, which begins in the first, and as many bits behind it


def choose(ones, options):
    """The option whose index is the number of ``ones`` set, if all that are set come first."""
    if len(options) == 1:
        return options[0]
    half = 1 << ((len(options) - 1).bit_length() - 1)
    # No count of the ones, which would stand between them and the options.
    return Mux(ones[half - 1], choose(ones[half:], options[half:]),
               choose(ones[:half - 1], options[:half]))


class Lane(wiring.Component):
    """Holds a sub-stream of several pages, and splits it into code words.

    The next 12 bits are compared with all limits of the code at once, and the window moves by the
    length found: that is the only loop. What comes next is held in parts of 16 bits, the first word
    of each page also in a memory of its own, so that the last code word of a page is followed by
    the first one of the next without a gap.

    **Latency**: 1 cycle from ``steps`` to ``window`` and ``length``; 3 to ``overruns`` and
    ``underruns``.

    **Throughput**: a word written and a code word per cycle.

    **Numerics**: ``golden.streaming.huffman.read_codes``.

    **Errors**: ``overruns``, ``underruns``.

    Parameters
    ----------
    head_dim : int
        Elements of a row: 32, 64, 128 or 256.

    Members
    -------
    opens : ``In(1)``
        The word written next is the first of a page.
    write_enable : ``In(1)``
        Write a word behind the one written last. Not in the cycle of ``opens``.
    write_page : ``In(range(pages))``
    word : ``In(64)``
    loads : ``In(1)``
        The next step is the first of ``page``. The steps of a page are 8 at least.
    page : ``In(range(pages))``
    bits : ``In(range(48 * head_dim + 1))``
        Length of the sub-stream of the page that was loaded in the cycle before.
    limits : ``In(code_table(...)["limits"])``
    steps : ``In(1)``
        Pass a code word.
    ends : ``In(1)``
        It is the last one of the page.
    window : ``Out(12)``
        The bits that began with the code word passed in the cycle before, the first in bit 0.
    length : ``Out(range(13))``
        How many of them are the code word.
    overruns, underruns : ``Out(1)``
        The page that ended needed more bits than its sub-stream had, or fewer.
    """

    def __init__(self, *, head_dim):
        self._head_dim = check_int("Lane head_dim", head_dim, minimum=32, maximum=256)
        pages = pages_held(head_dim)
        super().__init__({
            "opens": In(1),
            "write_enable": In(1), "write_page": In(range(pages)), "word": In(WORD_BITS),
            "loads": In(1), "page": In(range(pages)), "bits": In(stream_bits(head_dim)),
            # The limits do not depend on the width of symbols.
            "limits": In(code_table(2)["limits"].shape),
            "steps": In(1), "ends": In(1),
            "window": Out(LONGEST), "length": Out(range(LONGEST + 1)),
            "overruns": Out(1), "underruns": Out(1),
        })

    @property
    def head_dim(self):
        return self._head_dim

    @property
    def pages(self):
        """Pages that fit."""
        return pages_held(self.head_dim)

    def elaborate(self, platform):
        m = Module()
        fetches, following, first = Signal(), Signal(WORD_BITS), Signal(WORD_BITS)
        self._hold_words(m, fetches, following, first)

        window, place = Signal(LONGEST), Signal(range(2 * _PART_BITS))
        reached = self._measure(window)
        less_one = choose(reached, [Const(value, 4) for value in range(LONGEST)])
        ahead = self._look_ahead(m, place, fetches, following, first)
        span = Cat(window, (ahead >> place[:-1])[LONGEST:2 * LONGEST])
        with m.If(self.loads):
            m.d.sync += [window.eq(first), place.eq(0)]
        with m.Elif(self.steps):
            m.d.sync += [
                window.eq(choose(reached, [
                    span[length:][:LONGEST] for length in range(1, LONGEST + 1)])),
                # One addition with a carry in, for the length is one more.
                place.eq((Cat(1, place[:-1]) + Cat(1, less_one))[1:]),
            ]
        m.d.sync += [self.window.eq(window), self.length.eq(less_one + 1)]
        self._count(m)
        return m

    def _hold_words(self, m, fetches, following, first):
        """Memories of words. ``first`` is that of the page to be loaded; ``following`` the one
        behind that in use, from the second cycle after ``fetches`` on."""
        index_bits = (self.head_dim - 1).bit_length()  # an eighth of a page is 0.75 * d words
        m.submodules.words = words = Sram(WORD_BITS, depth=self.pages << index_bits)
        m.submodules.firsts = firsts = Memory(shape=WORD_BITS, depth=self.pages, init=[])
        write, read = firsts.write_port(), firsts.read_port(domain="comb")
        into, outof = Signal(index_bits), Signal(index_bits)
        page, fetches_late = Signal.like(self.page), Signal()
        m.d.comb += [
            words.write.en.eq(self.write_enable),
            words.write.addr.eq(Cat(into, self.write_page)),
            words.write.data.eq(self.word),
            write.en.eq(self.write_enable & (into == 0)),
            write.addr.eq(self.write_page),
            write.data.eq(self.word),
            read.addr.eq(self.page),
            first.eq(read.data),
            words.read.en.eq(fetches_late),
            words.read.addr.eq(Cat(outof, page)),
            following.eq(words.read.data),
        ]
        m.d.sync += [
            into.eq(Mux(self.opens, 0, into + self.write_enable)),
            fetches_late.eq(fetches),
            outof.eq(outof + fetches_late),
        ]
        with m.If(self.loads):
            m.d.sync += [page.eq(self.page), outof.eq(1)]

    def _measure(self, window):
        """Limits reached by the bits of the window: as many as its code word has bits, less one."""
        return Cat(
            Cat(reversed(window[:length])) >= self.limits[f"of_{length}"]
            for length in range(1, LONGEST))

    def _look_ahead(self, m, place, fetches, following, first):
        """The parts from that on in which the window begins, at ``place``.

        When the window has come to the next part, it is known from the place's top bit a cycle
        later; the parts move up then.
        """
        parts = Signal(_PARTS_AHEAD * _PART_BITS)
        word, part = Signal(WORD_BITS), Signal(range(WORD_BITS // _PART_BITS))
        moved_up = Cat(parts[_PART_BITS:], word.word_select(part, _PART_BITS))
        ahead = Mux(place[-1], moved_up, parts)
        is_last = part == WORD_BITS // _PART_BITS - 1
        m.d.comb += fetches.eq(self.loads | (self.steps & place[-1] & is_last))
        with m.If(self.loads):
            m.d.sync += [parts.eq(first), word.eq(first), part.eq(_PARTS_AHEAD)]
        with m.Elif(self.steps):
            m.d.sync += parts.eq(ahead)
            with m.If(place[-1]):
                m.d.sync += part.eq(part + 1)
                with m.If(is_last):
                    m.d.sync += word.eq(following)
        return ahead

    def _count(self, m):
        """Count the bits down, a cycle behind."""
        loads, steps, ends = Signal(), Signal(), Signal()
        left = Signal(signed(len(self.bits) + 1))
        rest = Signal.like(left)
        m.d.comb += rest.eq(left - self.length)
        m.d.sync += [
            loads.eq(self.loads), steps.eq(self.steps), ends.eq(self.ends),
            self.overruns.eq(ends & rest[-1]),
            self.underruns.eq(ends & ~rest[-1] & rest.any()),
        ]
        with m.If(loads):
            m.d.sync += left.eq(self.bits)
        with m.Elif(steps):
            m.d.sync += left.eq(rest)
