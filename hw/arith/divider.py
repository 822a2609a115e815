"""Division, a few quotient bits per cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int

__all__ = ["Divider", "divider_latency", "division"]


def division(divisor_bits):
    """Layout of what a `Divider` takes."""
    return data.StructLayout({"numerator": divisor_bits, "divisor": divisor_bits})


def divider_latency(quotient_bits, bits_per_cycle):
    """Latency of a `Divider`."""
    return 1 + -(-quotient_bits // bits_per_cycle)


class Divider(wiring.Component):
    """Restoring divider: floor(``numerator`` * 2**(quotient_bits - 1) / ``divisor``).

    ``numerator`` must be below twice the ``divisor``, so that the quotient fits.

    **Latency**: `latency` cycles: 1 + quotient_bits / bits_per_cycle, rounded up.

    **Throughput**: one division at a time; the next may start in the cycle after the quotient was
    taken.

    **Numerics**: exact: integer division, rounded down.

    **Errors**: none. With a ``divisor`` of zero the quotient means nothing, but it comes.

    Parameters
    ----------
    divisor_bits : int
        Width of numerator and divisor.
    quotient_bits : int
        Width of the quotient.
    bits_per_cycle : int
        Quotient bits made per cycle: 1 or more. Each is a subtraction in the path.

    Members
    -------
    i : ``In(stream.Signature(division(divisor_bits)))``
    o : ``Out(stream.Signature(quotient_bits))``
    """

    def __init__(self, *, divisor_bits, quotient_bits, bits_per_cycle=2):
        self._divisor_bits = check_int("Divider divisor_bits", divisor_bits, minimum=1)
        self._quotient_bits = check_int("Divider quotient_bits", quotient_bits, minimum=1)
        self._bits_per_cycle = check_int(
            "Divider bits_per_cycle", bits_per_cycle, minimum=1, maximum=quotient_bits)
        super().__init__({
            "i": In(stream.Signature(division(divisor_bits))),
            "o": Out(stream.Signature(quotient_bits)),
        })

    @property
    def divisor_bits(self):
        return self._divisor_bits

    @property
    def quotient_bits(self):
        return self._quotient_bits

    @property
    def bits_per_cycle(self):
        return self._bits_per_cycle

    @property
    def latency(self):
        return divider_latency(self.quotient_bits, self.bits_per_cycle)

    def elaborate(self, platform):
        m = Module()

        rounds = self.latency - 1
        divisor = Signal(self.divisor_bits)
        remainder = Signal(self.divisor_bits + 1)  # below twice the divisor
        made_bits = rounds * self.bits_per_cycle
        quotient = Signal(made_bits)
        left = Signal(range(rounds + 1))

        next_remainder, next_quotient = remainder, quotient
        for _ in range(self.bits_per_cycle):
            rest = next_remainder - divisor
            fits = rest >= 0
            next_remainder = (Mux(fits, rest, next_remainder) << 1)[:len(remainder)]
            next_quotient = (next_quotient << 1 | fits)[:made_bits]

        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                divisor.eq(self.i.payload.divisor),
                remainder.eq(self.i.payload.numerator),
                left.eq(rounds),
            ]
        with m.Elif(left != 0):
            m.d.sync += [
                remainder.eq(next_remainder),
                quotient.eq(next_quotient),
                left.eq(left - 1),
                self.o.valid.eq(left == 1),
            ]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        m.d.comb += [
            self.i.ready.eq((left == 0) & ~self.o.valid),
            # Rounds of several bits may make more of them than asked for.
            self.o.payload.eq(quotient[made_bits - self.quotient_bits:]),
        ]
        return m
