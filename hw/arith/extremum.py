"""Smallest or largest of many numbers."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.checks import check_int

__all__ = ["Extremum", "extremum_latency"]

LEVELS_PER_STAGE = 2


def extremum_latency(count):
    """Latency of an `Extremum`."""
    return max(1, -(-(count - 1).bit_length() // LEVELS_PER_STAGE))


class Extremum(wiring.Component):
    """Pipelined tree of comparisons.

    **Latency**: `latency` cycles: one for each two levels of the tree.

    **Throughput**: one result per cycle; the pipeline never stops.

    **Numerics**: exact (``min`` or ``max``).

    **Errors**: none.

    Parameters
    ----------
    bits : int
        Width of a number, unsigned.
    count : int
        Numbers to choose from.
    largest : bool
        Whether to give the largest instead of the smallest.

    Members
    -------
    i : ``In(ArrayLayout(bits, count))``
    o : ``Out(bits)``
    """

    def __init__(self, *, bits, count, largest):
        self._bits = check_int("Extremum bits", bits, minimum=1)
        self._count = check_int("Extremum count", count, minimum=1)
        if not isinstance(largest, bool):
            raise TypeError(f"Extremum largest must be a bool, not {largest!r}")
        self._largest = largest
        super().__init__({"i": In(data.ArrayLayout(bits, count)), "o": Out(bits)})

    @property
    def bits(self):
        return self._bits

    @property
    def count(self):
        return self._count

    @property
    def largest(self):
        return self._largest

    @property
    def latency(self):
        return extremum_latency(self.count)

    def elaborate(self, platform):
        m = Module()
        terms = [self.i[index] for index in range(self.count)]
        for stage in range(1, self.latency + 1):
            for _ in range(LEVELS_PER_STAGE):
                pairs = [self._better(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
                terms = pairs + terms[len(terms) & ~1:]
            terms = [delay(m, term, 1, name=f"stage_{stage}_{place}")
                     for place, term in enumerate(terms)]
        (best,) = terms
        m.d.comb += self.o.eq(best)
        return m

    def _better(self, a, b):
        return Mux(a > b, a, b) if self.largest else Mux(b < a, b, a)
