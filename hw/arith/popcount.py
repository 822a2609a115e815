"""Number of ones in a word."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.checks import check_int

__all__ = ["Popcount", "count_ones", "popcount_latency"]

LEAF_BITS = 4
LEVELS_PER_STAGE = 4


def _count_leaf(bits):
    """Ones among up to four bits, in gates: each output bit is one 4-input function."""
    zero, one, two, three = [*bits, *[0] * (LEAF_BITS - len(bits))]
    low = zero ^ one ^ two
    high = (zero & one) | (two & (zero | one))
    carry = low & three
    return Cat(low ^ three, high ^ carry, high & carry)


def _leaves(value):
    return [_count_leaf(value[start:start + LEAF_BITS])
            for start in range(0, len(value), LEAF_BITS)]


def _add_pairs(terms):
    pairs = [left + right for left, right in zip(terms[::2], terms[1::2], strict=False)]
    return pairs + terms[len(terms) & ~1:]


def count_ones(value):
    """Expression of the number of ones in a short signal.

    Returns
    -------
    Value
        Unsigned, just wide enough for ``len(value)``.
    """
    terms = _leaves(value)
    while len(terms) > 1:
        terms = _add_pairs(terms)
    return terms[0][:len(value).bit_length()]


def popcount_latency(bits):
    """Latency of a `Popcount`: the leaves, then four levels of small additions per stage."""
    levels = (-(-bits // LEAF_BITS) - 1).bit_length()
    return 1 + -(-levels // LEVELS_PER_STAGE)


class Popcount(wiring.Component):
    """Pipelined adder tree over the bits of a word.

    **Latency**: `latency` cycles: 1 up to 4 bits, 2 up to 64, 3 up to 1024, 4 up to 16384.

    **Throughput**: one word per cycle; the pipeline never stops.

    **Numerics**: exact (``int.bit_count``).

    **Errors**: none.

    Parameters
    ----------
    bits : int
        Width of the word, at least 1.

    Members
    -------
    i : ``In(bits)``
    o : ``Out(range(bits + 1))``
    """

    def __init__(self, *, bits):
        self._bits = check_int("Popcount bits", bits, minimum=1)
        super().__init__({"i": In(bits), "o": Out(range(bits + 1))})

    @property
    def bits(self):
        return self._bits

    @property
    def latency(self):
        return popcount_latency(self.bits)

    def elaborate(self, platform):
        m = Module()
        # The word comes from a memory, late in the cycle: its stage is a level or two of gates.
        terms = _leaves(self.i)
        for stage in range(1, self.latency):
            terms = [delay(m, term, 1, name=f"stage_{stage}_{place}")
                     for place, term in enumerate(terms)]
            for _ in range(LEVELS_PER_STAGE):
                terms = _add_pairs(terms)
        (total,) = terms
        m.d.sync += self.o.eq(total)
        return m
