"""Lanes of multiply and accumulate whose sums can be scaled down on the way."""

from amaranth.hdl import Array, Module, Mux, Signal, signed
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

    **Latency**: 3 cycles (`LATENCY`) to ``sums``: two multipliers per lane, for the low and the
    high bits of the weight; their sum; the addition to ``sums``.

    **Throughput**: one operation per cycle.

    **Numerics**: exact but for the floor of the shift. ``golden.pipeline.accumulate``.

    **Errors**: none; ``sum_bits`` must hold every sum.

    Parameters
    ----------
    lanes : int
    weight_bits : int
        Width of the weight, unsigned.
    operand_bits : int
        Width of an operand, signed.
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

    LATENCY = 3

    def __init__(self, *, lanes, weight_bits, operand_bits, sum_bits, planes):
        self._lanes = check_int("Accumulator lanes", lanes, minimum=1)
        self._weight_bits = check_int("Accumulator weight_bits", weight_bits, minimum=1)
        self._operand_bits = check_int("Accumulator operand_bits", operand_bits, minimum=2)
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

        step = delay(m, self.step, self.LATENCY - 1, name="step")
        clear = delay(m, self.clear, self.LATENCY - 1, name="clear")
        upper = delay(m, self.upper, 1, name="upper")

        # The multipliers of an FPGA sit in rows far apart, so each has a register of its own.
        low_bits = self.weight_bits // 2
        low_weight, high_weight = self.weight[:low_bits], self.weight[low_bits:]
        for lane, operand in enumerate(self.operands):
            low = Signal(signed(low_bits + self.operand_bits), name=f"low_{lane}")
            high = Signal(signed(self.weight_bits - low_bits + self.operand_bits),
                          name=f"high_{lane}")
            product = Signal(signed(self._product_bits), name=f"product_{lane}")
            exact = low + (high << low_bits)
            if self.planes == 1:
                exact = Mux(upper, exact << UPPER_SHIFT, exact)
            total = self.sums[lane]
            scaled = Array(total >> shift for shift in SHIFT_STEPS)[step]
            m.d.sync += [
                low.eq(low_weight * operand),
                high.eq(high_weight * operand),
                product.eq(exact),
                total.eq(Mux(clear, 0, scaled + product)),
            ]
        return m
