"""Distances of the queries behind the matcher, and the smallest one of each page."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.extremum import Extremum
from hw.arith.rounding import delay
from hw.attention.retrieval_layouts import Strobe, check_config, distance_line
from hw.config import PAGE_TOKENS, PAGES_PER_GROUP
from hw.shared import Once
from hw.sram import Sram

__all__ = ["DistanceBuffer", "group_bits"]


def group_bits(config):
    """Width of the number of a page group: the pages that share a word of minima."""
    return max(1, (config.max_pages // PAGES_PER_GROUP - 1).bit_length())


class DistanceBuffer(wiring.Component):
    """Two banks of distances: one is written by the matcher while the other is scanned.

    A page's minimum is over its visible tokens. A forced token counts as distance 0, so that its
    page is always found.

    **Latency**: a line's distances can be read 1 cycle after it, its page's minimum 3 cycles after
    it. Reads take 1 cycle.

    **Throughput**: one line written, one page of distances and one group of minima read per cycle.

    **Numerics**: none, distances pass unchanged.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(Strobe(distance_line(config)))``
        Lines of a query, in order.
    distances : ``Out(ReadPort.Signature(...))`` of ``ArrayLayout(distance_bits, 16)``
        Address: page, then bank.
    minima : ``Out(ReadPort.Signature(...))`` of ``ArrayLayout(distance_bits, 16)``
        One minimum per page. Address: group of 16 pages, then bank.
    """

    def __init__(self, config):
        self._config = check_config("DistanceBuffer", config)
        bits = config.distance_bits
        super().__init__({
            "i": In(Strobe(distance_line(config))),
            "distances": Out(memory.ReadPort.Signature(
                addr_width=config.page_bits + 1, shape=data.ArrayLayout(bits, PAGE_TOKENS))),
            "minima": Out(memory.ReadPort.Signature(
                addr_width=group_bits(config) + 1, shape=data.ArrayLayout(bits, PAGES_PER_GROUP))),
        })

    @property
    def config(self):
        return self._config

    @property
    def line_pages_log2(self):
        """log2 of the pages in a line, 0 when a line is part of a page."""
        return max(1, self.config.lanes // PAGE_TOKENS).bit_length() - 1

    @property
    def page_lines_log2(self):
        """log2 of the lines of a page, 0 when a page is part of a line."""
        return max(1, PAGE_TOKENS // self.config.lanes).bit_length() - 1

    def elaborate(self, platform):
        m = Module()
        self._build_distances(m)
        self._build_minima(m)
        return m

    def _build_distances(self, m):
        """A word is a page, or a line of several pages."""
        config = self.config
        lanes = config.lanes
        word_tokens = max(lanes, PAGE_TOKENS)
        word_bits = config.page_bits - self.line_pages_log2
        m.submodules.distances = distances = Sram(
            data.ArrayLayout(config.distance_bits, word_tokens), depth=2 << word_bits,
            granularity=min(lanes, word_tokens))

        line = self.i.payload
        part = line.line[:self.page_lines_log2]
        word = line.line[self.page_lines_log2:]
        m.d.comb += [
            distances.write.en.eq(self.i.valid << part),
            distances.write.addr.eq(Cat(self._fit(word, word_bits), line.bank)),
        ]
        m.d.comb += [distances.write.data[token].eq(line.distances[token % lanes])
                     for token in range(word_tokens)]

        place = Signal(self.line_pages_log2)
        m.d.comb += [
            distances.read.en.eq(self.distances.en),
            distances.read.addr.eq(self.distances.addr[self.line_pages_log2:]),
            self.distances.data.eq(distances.read.data.as_value().word_select(
                place, len(self.distances.data.as_value()))),
        ]
        with m.If(self.distances.en):
            m.d.sync += place.eq(self.distances.addr)

    def _build_minima(self, m):
        config = self.config
        line_pages = 1 << self.line_pages_log2
        m.submodules.minima = minima = Sram(
            data.ArrayLayout(config.distance_bits, PAGES_PER_GROUP), depth=2 << group_bits(config),
            granularity=line_pages)

        smallest = []
        for place in range(line_pages):
            tree = Once(Extremum(bits=config.distance_bits, count=min(config.lanes, PAGE_TOKENS),
                                 largest=False))
            m.submodules[f"smallest_{place}"] = tree
            smallest.append(tree)
            for index in range(tree.count):
                lane = place * PAGE_TOKENS + index
                m.d.comb += tree.i[index].eq(self._candidate(lane))
        wait = smallest[0].latency
        valid = delay(m, self.i.valid, wait, name="valid")
        line = delay(m, self.i.payload.line, wait, name="line")
        bank = delay(m, self.i.payload.bank, wait, name="bank")

        values = [tree.o for tree in smallest]
        if self.page_lines_log2:
            # The lines of a page come one after the other, and each writes the minimum so far.
            so_far = Signal(config.distance_bits)
            first = line[:self.page_lines_log2] == 0
            values = [Mux(first | (values[0] < so_far), values[0], so_far)]
            with m.If(valid):
                m.d.sync += so_far.eq(values[0])

        # Pages of a group per line, then groups.
        part_bits = (PAGES_PER_GROUP // line_pages).bit_length() - 1
        place = line[self.page_lines_log2:]
        m.d.comb += [
            minima.write.en.eq(valid << place[:part_bits]),
            minima.write.addr.eq(Cat(self._fit(place[part_bits:], group_bits(config)), bank)),
            minima.read.en.eq(self.minima.en),
            minima.read.addr.eq(self.minima.addr),
            self.minima.data.eq(minima.read.data),
        ]
        m.d.comb += [minima.write.data[page].eq(values[page % line_pages])
                     for page in range(PAGES_PER_GROUP)]

    def _candidate(self, lane):
        """Distance of a lane as the minimum sees it; no token is as far as can be."""
        line = self.i.payload
        width = self.config.distance_bits
        seen = line.distances[lane] & line.counted[lane].replicate(width)
        return seen | (~line.visible[lane]).replicate(width)

    def _fit(self, value, width):
        return Cat(value, *[0] * (width - len(value)))[:width]
