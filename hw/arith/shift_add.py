"""Sum of two numbers, each scaled down first."""

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.checks import check_int

__all__ = ["SHIFT_BITS", "ShiftAdd"]

SHIFT_BITS = 6
FINE_BITS = 3


class ShiftAdd(wiring.Component):
    """``o`` = (``a`` >> ``shift_a``) + (``b`` >> ``shift_b``), modulo 2**bits.

    **Latency**: 3 cycles (`LATENCY`) in which ``enable`` is high: coarse shift; fine shift; sum.

    **Throughput**: 1 per cycle.

    **Numerics**: shifts round down. ``golden.merge.merge``, docs/numerics.md section 7.

    **Errors**: none; a sum that overflows wraps.

    Parameters
    ----------
    bits : int
        Width of ``a``, ``b`` and ``o``.
    is_signed : bool
        Whether they are signed.

    Members
    -------
    a, b : ``In(bits)``, signed if ``is_signed``
    shift_a, shift_b : ``In(6)``
    o : ``Out(bits)``, likewise
    enable : ``In(1)``
        Lets the pipeline advance.
    """

    LATENCY = 3

    def __init__(self, *, bits, is_signed):
        self._bits = check_int("ShiftAdd bits", bits, minimum=2)
        if not isinstance(is_signed, bool):
            raise TypeError(f"ShiftAdd is_signed must be a bool, not {is_signed!r}")
        self._is_signed = is_signed
        word = Shape(bits, is_signed)
        super().__init__({
            "a": In(word),
            "b": In(word),
            "shift_a": In(SHIFT_BITS),
            "shift_b": In(SHIFT_BITS),
            "o": Out(word),
            "enable": In(1),
        })

    @property
    def bits(self):
        return self._bits

    @property
    def is_signed(self):
        return self._is_signed

    def elaborate(self, platform):
        m = Module()
        terms = [
            self._shift(m, "a", self.a, self.shift_a),
            self._shift(m, "b", self.b, self.shift_b),
        ]
        with m.If(self.enable):
            m.d.sync += self.o.eq(sum(terms))
        return m

    def _shift(self, m, name, value, shift):
        coarse = Signal.like(value, name=f"{name}_coarse")
        shifted = Signal.like(value, name=f"{name}_shifted")
        fine = delay(m, shift[:FINE_BITS], 1, name=f"{name}_fine", enable=self.enable)
        with m.If(self.enable):
            m.d.sync += [
                coarse.eq(value >> (shift[FINE_BITS:] << FINE_BITS)),
                shifted.eq(coarse >> fine),
            ]
        return shifted
