"""Lanes of multiply and accumulate whose sums can be scaled down on the way."""

from amaranth.hdl import Array, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.dot import UPPER_SHIFT
from hw.arith.rounding import delay
from hw.checks import check_int

__all__ = ["SHIFT_STEPS", "Accumulator"]

# Shifts that fit into one step. Longer ones are sequences of these: at most nine steps for 63.
SHIFT_STEPS = (0, 1, 4, 16)


class Accumulator(wiring.Component):
    """``sums[j]`` = (``sums[j]`` >> step) + ``weight`` * ``operands[j]`` (times 8 if ``upper``).

    Each cycle is an operation; a weight of zero adds nothing. The shift rounds down.

    A lane multiplies by choosing among multiples of the weight, which are made once for all lanes:
    operands are so narrow that a multiplier block would mostly idle.

    **Latency**: 4 cycles (`LATENCY`) to ``sums``: multiples; a sum of them for the low four bits of
    the operand and one for the rest; the product; the addition to ``sums``.

    **Throughput**: one operation per cycle.

    **Numerics**: exact but for the floor of the shift. ``golden.pipeline.accumulate``.

    **Errors**: none; ``sum_bits`` must hold every sum.

    Parameters
    ----------
    lanes : int
    weight_bits : int
        Width of the weight, unsigned.
    operand_bits : int
        Width of an operand, signed: 5 or 8.
    sum_bits : int
        Width of a sum, signed.
    planes : int
        Planes per beat, 1 or 2: with 2, operands are whole elements and never in units of 8.

    Members
    -------
    weight : ``In(weight_bits)``
    operands : ``In(ArrayLayout(signed(operand_bits), lanes))``
    upper : ``In(1)``
        The operands are in units of 8. Without meaning when ``planes`` is 2.
    step : ``In(2)``
        Index into `SHIFT_STEPS`.
    clear : ``In(1)``
        Makes the sums zero instead; the weight must be zero.
    sums : ``Out(ArrayLayout(signed(sum_bits), lanes))``
    """

    LATENCY = 4

    def __init__(self, *, lanes, weight_bits, operand_bits, sum_bits, planes):
        self._lanes = check_int("Accumulator lanes", lanes, minimum=1)
        self._weight_bits = check_int("Accumulator weight_bits", weight_bits, minimum=1)
        self._operand_bits = check_int("Accumulator operand_bits", operand_bits)
        if operand_bits not in (5, 8):
            raise ValueError(f"Accumulator operand_bits must be 5 or 8, not {operand_bits!r}")
        self._planes = check_int("Accumulator planes", planes, minimum=1, maximum=2)
        self._sum_bits = check_int("Accumulator sum_bits", sum_bits, minimum=self._product_bits)
        super().__init__({
            "weight": In(weight_bits),
            "operands": In(data.ArrayLayout(signed(operand_bits), lanes)),
            "upper": In(1),
            "step": In(range(len(SHIFT_STEPS))),
            "clear": In(1),
            "sums": Out(data.ArrayLayout(signed(sum_bits), lanes)),
        })

    @property
    def lanes(self):
        return self._lanes

    @property
    def weight_bits(self):
        return self._weight_bits

    @property
    def operand_bits(self):
        return self._operand_bits

    @property
    def sum_bits(self):
        return self._sum_bits

    @property
    def planes(self):
        return self._planes

    @property
    def _product_bits(self):
        return self.weight_bits + self.operand_bits + (UPPER_SHIFT if self.planes == 1 else 0)

    def elaborate(self, platform):
        m = Module()

        multiples = self._multiples(m)
        step = delay(m, self.step, self.LATENCY - 1, name="step")
        clear = delay(m, self.clear, self.LATENCY - 1, name="clear")
        upper = delay(m, self.upper, 2, name="upper")

        for lane, operand in enumerate(self.operands):
            exact = self._multiply(m, lane, operand, multiples)
            if self.planes == 1:
                exact = Mux(upper, exact << UPPER_SHIFT, exact)
            product = Signal(signed(self._product_bits), name=f"product_{lane}")
            total = self.sums[lane]
            scaled = Array(total >> shift for shift in SHIFT_STEPS)[step]
            m.d.sync += [
                product.eq(exact),
                total.eq(Mux(clear, 0, scaled + product)),
            ]
        return m

    def _multiples(self, m):
        """The weight times -2 .. 3, in registers; all lanes choose among them."""
        weight = Signal(self.weight_bits)
        triple = Signal(self.weight_bits + 2)
        negative = Signal(signed(self.weight_bits + 1))
        m.d.sync += [
            weight.eq(self.weight),
            triple.eq(self.weight + (self.weight << 1)),
            negative.eq(-self.weight),
        ]
        return {-2: negative << 1, -1: negative, 0: Const(0), 1: weight, 2: weight << 1, 3: triple}

    def _multiply(self, m, lane, operand, multiples):
        """The weight times an operand, from a register for its low four bits and one for the rest.

        Each pair of bits chooses a multiple; the pair with the sign, or the sign alone, a negative.
        """
        digits = delay(m, operand, 1, name=f"operand_{lane}")
        unsigned_pair = Array(multiples[digit] for digit in (0, 1, 2, 3))
        signed_pair = Array(multiples[digit] for digit in (0, 1, -2, -1))
        low = Signal(self.weight_bits + 4, name=f"low_{lane}")
        high = Signal(signed(self.weight_bits + self.operand_bits - 4), name=f"high_{lane}")
        m.d.sync += low.eq(unsigned_pair[digits[0:2]] + (unsigned_pair[digits[2:4]] << 2))
        if self.operand_bits == 5:
            m.d.sync += high.eq(Mux(digits[4], multiples[-1], 0))
        else:
            m.d.sync += high.eq(unsigned_pair[digits[4:6]] + (signed_pair[digits[6:8]] << 2))
        return low + (high << 4)
