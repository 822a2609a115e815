"""How many tokens lie at each distance."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.popcount import count_ones
from hw.arith.rounding import delay
from hw.attention.retrieval_layouts import (
    LANES_PER_COUNT,
    Strobe,
    check_config,
    distance_line,
    histogram_latency,
)
from hw.shared import Once

__all__ = ["Histogram", "HistogramBin"]


class HistogramBin(wiring.Component):
    """Counter of the lanes at one distance, and a place in a chain through which counts move.

    **Latency**: `latency` cycles from ``distances`` to ``count``; 1 cycle from ``above``.

    **Throughput**: one line, or one move, per cycle.

    **Numerics**: exact; the sum of all matches must fit in ``count_bits``.

    **Errors**: none. Lines that were under way may not arrive during a move.

    Parameters
    ----------
    lanes : int
    distance_bits : int
    count_bits : int
    latency : int
        2, or 3 with a register between the partial counts and the counter.

    Members
    -------
    index : ``In(distance_bits)``
        The distance counted here.
    distances : ``In(distance_bits * lanes)``
        Of all lanes, the first in the low bits.
    counted : ``In(lanes)``
        Lanes that take part.
    move : ``In(1)``
        Take the count of ``above``.
    above : ``In(count_bits)``
    count : ``Out(count_bits)``
    """

    def __init__(self, *, lanes, distance_bits, count_bits, latency):
        self._lanes = lanes
        self._distance_bits = distance_bits
        self._count_bits = count_bits
        self._latency = latency
        super().__init__({
            "index": In(distance_bits),
            "distances": In(distance_bits * lanes),
            "counted": In(lanes),
            "move": In(1),
            "above": In(count_bits),
            "count": Out(count_bits),
        })

    @property
    def lanes(self):
        return self._lanes

    @property
    def distance_bits(self):
        return self._distance_bits

    @property
    def count_bits(self):
        return self._count_bits

    @property
    def latency(self):
        return self._latency

    def elaborate(self, platform):
        m = Module()
        matches = Signal(self.lanes)
        m.d.comb += [
            matches[lane].eq(self.counted[lane] & (
                self.distances.word_select(lane, self.distance_bits) == self.index))
            for lane in range(self.lanes)
        ]
        parts = [delay(m, count_ones(matches[start:start + LANES_PER_COUNT]), 1,
                       name=f"part_{start}")
                 for start in range(0, self.lanes, LANES_PER_COUNT)]
        total = delay(m, _tree_sum(parts), self.latency - 2, name="total")
        with m.If(self.move):
            m.d.sync += self.count.eq(self.above)
        with m.Else():
            m.d.sync += self.count.eq(self.count + total)
        return m


def _tree_sum(terms):
    while len(terms) > 1:
        terms = [left + right for left, right in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


class Histogram(wiring.Component):
    """Counts tokens per distance; is read, and cleared, from the bottom in chunks.

    Each ``shift`` moves all counts down by ``bins_per_cycle`` bins, while zeros come in at the top:
    after `chunks` of them every count has been seen at the bottom, and all are zero again.

    **Latency**: 2 cycles from a line to its counts, 3 with 32 lanes or more.

    **Throughput**: one line, or one chunk, per cycle.

    **Numerics**: exact.

    **Errors**: none. Lines and shifts take turns: the matcher starts a query only when its first
    line lands after the last shift.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(Strobe(distance_line(config)))``
        Distances of a line; its counted lanes are added.
    shift : ``In(1)``
    bins : ``Out(ArrayLayout(token_bits, bins_per_cycle))``
        The lowest chunk.
    """

    def __init__(self, config):
        self._config = check_config("Histogram", config)
        super().__init__({
            "i": In(Strobe(distance_line(config))),
            "shift": In(1),
            "bins": Out(data.ArrayLayout(config.token_bits, config.bins_per_cycle)),
        })

    @property
    def config(self):
        return self._config

    @property
    def chunks(self):
        """Shifts that read the whole histogram."""
        return -(-self.config.distance_bins // self.config.bins_per_cycle)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        step = config.bins_per_cycle
        counted = Signal(config.lanes)
        with m.If(self.i.valid):
            m.d.comb += counted.eq(self.i.payload.counted)

        bins = []
        for index in range(config.distance_bins):
            one = Once(HistogramBin(lanes=config.lanes, distance_bits=config.distance_bits,
                                    count_bits=config.token_bits,
                                    latency=histogram_latency(config)))
            m.submodules[f"bin_{index}"] = one
            bins.append(one)
            m.d.comb += [
                one.index.eq(index),
                one.distances.eq(self.i.payload.distances),
                one.counted.eq(counted),
                one.move.eq(self.shift),
            ]
        for lower, upper in zip(bins, bins[step:], strict=False):
            m.d.comb += lower.above.eq(upper.count)
        for place, one in enumerate(bins[:step]):
            m.d.comb += self.bins[place].eq(one.count)
        return m
