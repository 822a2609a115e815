"""Distance of one key code from the codes of a query's group."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.popcount import Popcount, popcount_latency
from hw.checks import check_int

__all__ = ["MatchLane", "match_lane_latency"]


def match_lane_latency(code_bits, group):
    """Latency of a `MatchLane`."""
    return popcount_latency(code_bits * group)


class MatchLane(wiring.Component):
    """Compares a code with each head's query code: the summed Hamming distance, shifted right.

    Calibration terms (a bonus of the token's place and age) belong between the sum and the shift,
    as one more operand of the last addition.

    **Latency**: `latency` cycles.

    **Throughput**: one code per cycle; the pipeline never stops.

    **Numerics**: ``golden.hashing.distance``, docs/numerics.md section 9.

    **Errors**: none.

    Parameters
    ----------
    code_bits : int
        Length of a code.
    group : int
        Heads that share the candidates.
    distance_shift : int
        Right shift of the sum.

    Members
    -------
    code : ``In(code_bits)``
    queries : ``In(ArrayLayout(code_bits, group))``
    distance : ``Out(range((code_bits * group >> distance_shift) + 1))``
    """

    def __init__(self, *, code_bits, group, distance_shift):
        self._code_bits = check_int("MatchLane code_bits", code_bits, minimum=1)
        self._group = check_int("MatchLane group", group, minimum=1)
        self._distance_shift = check_int("MatchLane distance_shift", distance_shift, minimum=0)
        super().__init__({
            "code": In(code_bits),
            "queries": In(data.ArrayLayout(code_bits, group)),
            "distance": Out(range((code_bits * group >> distance_shift) + 1)),
        })

    @property
    def code_bits(self):
        return self._code_bits

    @property
    def group(self):
        return self._group

    @property
    def distance_shift(self):
        return self._distance_shift

    @property
    def latency(self):
        return match_lane_latency(self.code_bits, self.group)

    def elaborate(self, platform):
        m = Module()
        # Summing heads and counting bits is one count over all heads' differing bits.
        m.submodules.popcount = popcount = Popcount(bits=self.code_bits * self.group)
        m.d.comb += [
            popcount.i.eq(Cat(self.code ^ self.queries[head] for head in range(self.group))),
            self.distance.eq(popcount.o >> self.distance_shift),
        ]
        return m
