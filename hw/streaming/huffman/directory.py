"""Directory of a page: how long its sub-streams are."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.huffman.geometry import (
    LANES,
    WORD_BITS,
    WORD_BYTES,
    check_coded,
    largest_bits,
    stream_bits,
)
from hw.streaming.wire import (
    ROWS_PER_PAGE,
    SCALE_BYTES,
    SMALLEST_PAGE_BYTES,
    UNIT_BYTES,
    largest_coded_page,
)

__all__ = ["HEAD_WORDS", "UNIT_WORDS", "Directory", "unit_bits"]

LENGTH_BITS = 16
_PER_WORD = WORD_BITS // LENGTH_BITS
HEAD_WORDS = (ROWS_PER_PAGE * SCALE_BYTES) // WORD_BYTES + LANES // _PER_WORD
UNIT_WORDS = UNIT_BYTES // WORD_BYTES
SMALLEST_UNITS = SMALLEST_PAGE_BYTES // UNIT_BYTES


def unit_bits(config: StreamingConfig) -> int:
    """Width of the number of units of 64 bytes in the pages of a payload."""
    pages = config.chunk_tokens * 2 // ROWS_PER_PAGE
    return (pages * largest_coded_page(config.head_dim) // UNIT_BYTES).bit_length()


class Directory(wiring.Component):
    """Reads the directories of a payload, one after the other, and checks each.

    **Latency**: 6 cycles (`LATENCY`) from the second word to ``is_done``.

    **Throughput**: a page each time ``is_done``.

    **Numerics**: ``golden.streaming.layout.coded_page_bytes``.

    **Errors**: ``is_refused``: check 13 of docs/wire_format.md.

    Parameters
    ----------
    config : StreamingConfig
        With at least one entropy-coded format.

    Members
    -------
    begins : ``In(1)``
        A payload begins, whose pages have ``units``.
    units : ``In(unit_bits(config))``
        Size of all pages in units of 64 bytes.
    enable : ``In(1)``
        A word of a directory: the first of two if ``is_first``, otherwise the second.
    is_first : ``In(1)``
    word : ``In(64)``
    is_last_page : ``In(1)``
        The directory is that of the last page. Holds from its first word on.
    is_done : ``Out(1)``
        What follows is that of the directory given last.
    is_refused : ``Out(1)``
    bits : ``Out(ArrayLayout(stream_bits(head_dim), 8))``
        Lengths of the sub-streams.
    ends : ``Out(ArrayLayout(..., 8))``
        Word behind each sub-stream, counted from the word behind the directory.
    last_unit : ``Out(...)``
        Units of the page, less one.
    """

    LATENCY = 6

    def __init__(self, config: StreamingConfig):
        self._config = check_coded("Directory", config)
        most_words = LANES * largest_bits(config.head_dim) // WORD_BITS
        most_units = largest_coded_page(config.head_dim) // UNIT_BYTES
        super().__init__({
            "begins": In(1), "units": In(unit_bits(config)),
            "enable": In(1), "is_first": In(1), "word": In(WORD_BITS), "is_last_page": In(1),
            "is_done": Out(1), "is_refused": Out(1),
            "bits": Out(data.ArrayLayout(stream_bits(config.head_dim), LANES)),
            "ends": Out(data.ArrayLayout(range(most_words + 1), LANES)),
            "last_unit": Out(range(most_units)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        sizes, too_long = Signal.like(self.ends), Signal()
        has_first, has_second, step = Signal(), Signal(), Signal(range(LANES // 2))
        adds, is_summed, is_checked = Signal(), Signal(), Signal()
        self._measure(m, sizes, too_long)

        # Two sub-streams in a cycle.
        end = Signal.like(self.ends[0])
        sums = [end + sizes.as_value().word_select(step << 1, len(end))]
        sums.append(sums[0] + sizes.as_value().word_select((step << 1) + 1, len(end)))
        m.d.comb += adds.eq(Mux(step[-1], has_second, has_first))
        m.d.sync += [is_summed.eq(0), is_checked.eq(is_summed)]
        with m.If(adds):
            m.d.sync += [step.eq(step + 1), end.eq(sums[1])]
            for index, total in enumerate(sums):
                m.d.sync += self.ends.as_value().word_select(
                    (step << 1) + index, len(end)).eq(total)
            with m.If(step.all()):
                m.d.sync += [is_summed.eq(1), has_first.eq(0), has_second.eq(0), end.eq(0)]
        with m.If(self.enable):
            m.d.sync += [has_first.eq(1), has_second.eq(~self.is_first)]
        with m.If(self.enable & self.is_first):
            m.d.sync += [step.eq(0), end.eq(0), self.is_done.eq(0)]
        self._judge(m, too_long, is_summed, is_checked)
        with m.If(self.begins):
            # Of the frame before, if that was cut.
            m.d.sync += [
                has_first.eq(0), has_second.eq(0), is_summed.eq(0), is_checked.eq(0),
            ]
        return m

    def _measure(self, m, sizes, too_long):
        """Words of each sub-stream, right if it is not too long."""
        fields = [self.word.word_select(index, LENGTH_BITS) for index in range(_PER_WORD)]
        exceeds = Cat(bits > largest_bits(self.config.head_dim) for bits in fields).any()
        partial = WORD_BITS.bit_length() - 1
        with m.If(self.enable):
            m.d.sync += too_long.eq(exceeds | (too_long & ~self.is_first))
            for index, (bits, size) in enumerate(zip(self.bits, sizes, strict=True)):
                field = fields[index % _PER_WORD]
                with m.If(self.is_first == (index < _PER_WORD)):
                    m.d.sync += [
                        bits.eq(field),
                        size.eq(field[partial:] + field[:partial].any()),
                    ]

    def _judge(self, m, too_long, is_summed, is_checked):
        """Compare the page with what is left of the payload."""
        units, left = Signal.like(self.units), Signal(signed(len(self.units) + 1))
        last_unit = (self.ends[-1] + (HEAD_WORDS - 1)) >> (UNIT_WORDS.bit_length() - 1)
        fits = Mux(self.is_last_page, left == 0, left >= SMALLEST_UNITS)
        with m.If(is_summed):
            m.d.sync += [self.last_unit.eq(last_unit), left.eq(units - last_unit - 1)]
        with m.If(is_checked):
            m.d.sync += [
                self.is_done.eq(1),
                self.is_refused.eq(too_long | ~fits),
                units.eq(left),
            ]
        with m.If(self.begins):
            m.d.sync += units.eq(self.units)
