"""Which of two products is less, without a multiplier."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.checks import check_int
from hw.streaming.scheduler.actor import Call
from hw.streaming.scheduler.meter import RATIO_BITS

__all__ = ["ProductCompare", "products"]


def products(bits):
    """Layout of what a `ProductCompare` takes: two products, ``ratio * amount`` each."""
    side = data.StructLayout({"ratio": RATIO_BITS, "amount": bits})
    return data.StructLayout({"first": side, "second": side})


class ProductCompare(wiring.Component):
    """Tells whether the first product is less than the second.

    The difference of the products grows bit by bit of the ratios, highest first.

    **Latency**: 17 cycles from ``start`` to ``done``.

    **Throughput**: one call at a time.

    **Numerics**: exact.

    **Errors**: none.

    Parameters
    ----------
    bits : int
        Width of the amounts.

    Members
    -------
    call : ``In(Call(products(bits), 1))``
        The argument holds from ``start`` to ``done``.
    """

    def __init__(self, *, bits):
        self._bits = check_int("ProductCompare bits", bits, minimum=1)
        super().__init__({"call": In(Call(products(bits), 1))})

    @property
    def bits(self):
        return self._bits

    def elaborate(self, platform):
        m = Module()
        first, second = self.call.argument.first, self.call.argument.second
        step = Signal(range(RATIO_BITS + 1))
        ratios = [Signal(RATIO_BITS), Signal(RATIO_BITS)]
        amounts = [Signal(self.bits), Signal(self.bits)]
        both = Signal(signed(self.bits + 1))
        difference = Signal(signed(self.bits + RATIO_BITS + 1))   # second less first
        bits = ratios[0][-1], ratios[1][-1]
        term = Mux(bits[1], Mux(bits[0], both, amounts[1]), Mux(bits[0], -amounts[0], 0))

        m.d.comb += [
            self.call.done.eq(step == RATIO_BITS + 1),
            self.call.result.eq(difference > 0),
        ]
        with m.If(step == 0):
            m.d.sync += [
                ratios[0].eq(first.ratio), ratios[1].eq(second.ratio),
                amounts[0].eq(first.amount), amounts[1].eq(second.amount),
                both.eq(second.amount - first.amount),
                difference.eq(0),
                step.eq(self.call.start),
            ]
        with m.Else():
            m.d.sync += [
                *(ratio.eq(ratio << 1) for ratio in ratios),
                difference.eq((difference << 1) + term),
                step.eq(Mux(self.call.done, 0, step + 1)),
            ]
        return m
