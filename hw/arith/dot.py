"""Dot product of a vector with the planes of a stored row."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.checks import check_int

__all__ = ["PlaneDot", "dot_latency"]

LEVELS_PER_STAGE = 3   # additions between two registers
UPPER_SHIFT = 3        # an operand of the upper plane is in units of 8


def dot_latency(lanes):
    """Latency of a `PlaneDot`: its multipliers, and its adder tree with the gathering of planes."""
    levels = (lanes - 1).bit_length() + 1
    return 1 + -(-levels // LEVELS_PER_STAGE)


class PlaneDot(wiring.Component):
    """Sum over the lanes of ``a[j] * b[j]``, gathered over the planes of a row.

    With one plane per beat, the beat of the upper plane starts a row, and the one of the lower
    plane, if it comes, is added to it. ``sum`` holds the result from `latency` cycles after a row's
    last beat until the next row's first beat has come through.

    **Latency**: `latency` cycles in which ``enable`` is high: one for the multipliers, and one for
    each three levels of the adder tree (the gathering of planes counts as a level).

    **Throughput**: one beat per cycle.

    **Numerics**: exact. ``golden.pipeline``, docs/numerics.md section 3.

    **Errors**: none; no input overflows.

    Parameters
    ----------
    lanes : int
        Elements, a power of two.
    a_bits : int
        Width of an element of the vector, signed.
    b_bits : int
        Width of an operand, signed: 5 for a plane, 8 for a whole element.
    planes : int
        Planes per beat, 1 or 2: whether an operand is of one plane or a whole element.

    Members
    -------
    a : ``In(ArrayLayout(signed(a_bits), lanes))``
    b : ``In(ArrayLayout(signed(b_bits), lanes))``
    valid : ``In(1)``
        ``a`` and ``b`` are a beat of a row.
    upper : ``In(1)``
        The beat is of the upper plane, in units of 8. Without meaning when ``planes`` is 2.
    sum : ``Out(signed(a_bits + 8 + log2(lanes)))``
    enable : ``In(1)``
        Lets the pipeline advance.
    """

    def __init__(self, *, lanes, a_bits, b_bits, planes):
        self._lanes = check_int("PlaneDot lanes", lanes, minimum=2)
        if lanes & (lanes - 1):
            raise ValueError(f"PlaneDot lanes must be a power of two, not {lanes!r}")
        self._a_bits = check_int("PlaneDot a_bits", a_bits, minimum=2)
        self._b_bits = check_int("PlaneDot b_bits", b_bits, minimum=2)
        self._planes = check_int("PlaneDot planes", planes, minimum=1, maximum=2)
        super().__init__({
            "a": In(data.ArrayLayout(signed(a_bits), lanes)),
            "b": In(data.ArrayLayout(signed(b_bits), lanes)),
            "valid": In(1),
            "upper": In(1),
            "sum": Out(signed(a_bits + 8 + lanes.bit_length() - 1)),
            "enable": In(1),
        })

    @property
    def lanes(self):
        return self._lanes

    @property
    def a_bits(self):
        return self._a_bits

    @property
    def b_bits(self):
        return self._b_bits

    @property
    def planes(self):
        return self._planes

    @property
    def latency(self):
        return dot_latency(self.lanes)

    def elaborate(self, platform):
        m = Module()

        terms = [Signal(signed(self.a_bits + self.b_bits), name=f"product_{lane}")
                 for lane in range(self.lanes)]
        with m.If(self.enable):
            m.d.sync += [term.eq(self.a[lane] * self.b[lane]) for lane, term in enumerate(terms)]

        level = 0
        while len(terms) > 1:
            terms = [left + right for left, right in zip(terms[::2], terms[1::2], strict=True)]
            level += 1
            if level % LEVELS_PER_STAGE == 0:
                terms = [delay(m, term, 1, name=f"level_{level}_{place}", enable=self.enable)
                         for place, term in enumerate(terms)]

        (beat_sum,) = terms
        if self.planes == 1:
            beat_sum = Mux(self._late(m, self.upper, "upper"),
                           beat_sum << UPPER_SHIFT, beat_sum + self.sum)
        with m.If(self.enable & self._late(m, self.valid, "valid")):
            m.d.sync += self.sum.eq(beat_sum)
        return m

    def _late(self, m, control, name):
        """A control signal, in the cycle before its beat reaches ``sum``."""
        return delay(m, control, self.latency - 1, name=name, enable=self.enable)
