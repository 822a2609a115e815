"""How busy the device says it is."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int

__all__ = ["LEVELS", "Load"]

LEVELS = 3  # thresholds, one below each level but "light"


class Load(wiring.Component):
    """DevLoad from the number of requests that wait, with hysteresis.

    A bit per threshold says whether the level is above it. Since both lists of thresholds rise,
    each bit has its own hysteresis, and any number of levels is passed at once.

    **Latency**: 2 cycles from ``waiting`` to ``level``.

    **Throughput**: a count per cycle.

    **Numerics**: `golden.memory.device.Load`, updated every cycle.

    **Errors**: none. Where ``falls`` is not below ``rises``, the higher threshold has no meaning;
    where the thresholds do not rise, the level is the number of bits that are set.

    Parameters
    ----------
    count_bits : int
        Width of the count and of the thresholds.

    Members
    -------
    waiting : ``In(count_bits)``
    rises : ``In``, 3 counts
        A level is entered when this many or more wait.
    falls : ``In``, 3 counts
        It is left when fewer than this many wait.
    level : ``Out(2)``
        0 light .. 3 severe overload; 0 after reset.
    """

    def __init__(self, *, count_bits):
        self._count_bits = check_int("Load count_bits", count_bits, minimum=1)
        thresholds = data.ArrayLayout(self._count_bits, LEVELS)
        super().__init__({
            "waiting": In(self._count_bits),
            "rises": In(thresholds),
            "falls": In(thresholds),
            "level": Out(2),
        })

    @property
    def count_bits(self):
        return self._count_bits

    def elaborate(self, platform):
        m = Module()
        is_entered, is_kept = Signal(LEVELS), Signal(LEVELS)
        above = Signal(LEVELS)
        m.d.sync += [
            is_entered.eq(Cat(self.waiting >= self.rises[index] for index in range(LEVELS))),
            is_kept.eq(Cat(self.waiting >= self.falls[index] for index in range(LEVELS))),
            above.eq(is_entered | (above & is_kept)),
        ]
        m.d.comb += self.level.eq(sum(above))
        return m
