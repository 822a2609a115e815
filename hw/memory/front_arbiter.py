"""Requests of all sources to one stream: by quality of service, and none starves."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_config, check_int
from hw.config.memory import MemoryConfig
from hw.memory.layouts import line_request
from hw.stream import SkidBuffer

__all__ = ["FrontArbiter"]


class FrontArbiter(wiring.Component):
    """Lets the request of the highest ``qos`` through, among equals that of the source served
    longest ago.

    A request passed over ``bound`` times is overdue: it goes before any that is not, whatever its
    ``qos``. Of several, the one whose source was served longest ago is first, so that none is
    passed over more than ``bound + count - 2`` times (``bound``, of 2 sources or 1).

    **Latency**: 1 cycle. What was chosen is in a register slice, so that it holds until taken and
    no ready of an input depends on the output's.

    **Throughput**: 1 request per cycle, from one source or from several.

    **Numerics**: none, requests pass unchanged.

    **Errors**: none.

    Parameters
    ----------
    config : MemoryConfig
    count : int
        Number of sources, at least 1.
    bound : int
        How often a request may be passed over, 1..255.

    Members
    -------
    i : ``In(stream.Signature(line_request(config))).array(count)``
    o : ``Out(stream.Signature(line_request(config)))``
    """

    def __init__(self, config: MemoryConfig, *, count: int, bound: int = 16):
        self._config = check_config("FrontArbiter", config, MemoryConfig)
        self._count = check_int("FrontArbiter count", count, minimum=1)
        self._bound = check_int("FrontArbiter bound", bound, minimum=1, maximum=255)
        super().__init__({
            "i": In(stream.Signature(line_request(config))).array(count),
            "o": Out(stream.Signature(line_request(config))),
        })

    @property
    def config(self) -> MemoryConfig:
        return self._config

    @property
    def count(self) -> int:
        return self._count

    @property
    def bound(self) -> int:
        return self._bound

    def elaborate(self, platform):
        m = Module()
        m.submodules.chosen = chosen = SkidBuffer(line_request(self.config))
        wiring.connect(m, chosen.o, wiring.flipped(self.o))
        valid, overdue = Signal(self.count), Signal(self.count)
        wins, taken = Signal(self.count), Signal(self.count)
        m.d.comb += [
            valid.eq(Cat(port.valid for port in self.i)),
            taken.eq(Mux(chosen.i.ready, wins, 0)),
            chosen.i.valid.eq(valid.any()),
        ]
        self._choose(m, valid, overdue, wins, taken)
        self._count_passed(m, valid, overdue, taken)
        payload = 0
        for index, port in enumerate(self.i):
            m.d.comb += port.ready.eq(taken[index])
            payload |= Mux(wins[index], port.payload.as_value(), 0)
        m.d.comb += chosen.i.payload.eq(payload)
        return m

    def _choose(self, m, valid, overdue, wins, taken):
        """One bit of ``wins`` is set if any of ``valid`` is: each pair is compared at once."""
        urgency = [Mux(overdue[index], 1 << len(port.payload.qos), port.payload.qos)
                   for index, port in enumerate(self.i)]
        beaten = [[] for _ in range(self.count)]
        for first in range(self.count):
            for second in range(first + 1, self.count):
                precedes = Signal(init=1, name=f"precedes_{first}_{second}")
                is_first = Signal(name=f"is_first_{first}_{second}")
                m.d.comb += is_first.eq((urgency[first] > urgency[second]) | (
                    precedes & (urgency[first] == urgency[second])))
                beaten[second].append(valid[first] & is_first)
                beaten[first].append(valid[second] & ~is_first)
                with m.If(taken[first]):
                    m.d.sync += precedes.eq(0)
                with m.If(taken[second]):
                    m.d.sync += precedes.eq(1)
        for index in range(self.count):
            m.d.comb += wins[index].eq(valid[index] & ~Cat(beaten[index]).any())

    def _count_passed(self, m, valid, overdue, taken):
        """Count how often each request was passed over; ``overdue`` comes from registers."""
        for index in range(self.count):
            passed = Signal(range(self.bound + 1), name=f"passed_{index}")
            with m.If(taken[index]):
                m.d.sync += [passed.eq(0), overdue[index].eq(0)]
            with m.Elif(valid[index] & taken.any() & ~overdue[index]):
                m.d.sync += [passed.eq(passed + 1), overdue[index].eq(passed == self.bound - 1)]
