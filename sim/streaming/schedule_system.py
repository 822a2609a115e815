"""The route scheduler as benches run it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.config import StreamingConfig
from hw.streaming.layouts import TICK_BITS
from hw.streaming.scheduler import RouteScheduler
from hw.streaming.scheduler.layouts import Event

__all__ = ["TimedRouteScheduler"]


class TimedRouteScheduler(wiring.Component):
    """A `RouteScheduler` with a clock that begins with each job, and its events as a stream.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    tick_log2 : ``In(4)``
        Cycles of a tick.
    now : ``Out(32)``
    longest : ``Out(16)``
        Most cycles that an event of the job has taken.
    o_event : ``Out(stream)``
        Must be taken at once.
    """

    def __init__(self, config: StreamingConfig):
        self._config = config
        self._scheduler = RouteScheduler(config)
        members = dict(self._scheduler.signature.members)
        del members["event"]
        event = data.StructLayout(
            {"time": TICK_BITS, "event": Event, "chunk": config.chunk_bits})
        super().__init__(members | {
            "now": Out(TICK_BITS), "tick_log2": In(4), "longest": Out(16),
            "o_event": Out(stream.Signature(event))})

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.scheduler = scheduler = self._scheduler
        cycle = Signal(TICK_BITS)
        taken = Signal.like(self.longest)
        m.d.sync += [
            cycle.eq(cycle + 1),
            taken.eq(Mux(scheduler.reacting, taken + 1, 0)),
            self.longest.eq(Mux(taken > self.longest, taken, self.longest)),
        ]
        with m.If(self.start):
            m.d.sync += [cycle.eq(0), self.longest.eq(0)]
        m.d.comb += [
            self.now.eq(cycle >> self.tick_log2),
            scheduler.now.eq(self.now),
            self.o_event.valid.eq(scheduler.event.valid),
            *(self.o_event.payload[name].eq(scheduler.event[name])
              for name, _ in self.o_event.payload.shape()),
        ]
        for name, member in self.signature.members.items():
            if name in ("now", "tick_log2", "longest", "o_event"):
                continue
            if member.is_port:
                inner, outer = getattr(scheduler, name), getattr(self, name)
                m.d.comb += (outer.eq(inner) if member.flow == Out else inner.eq(outer))
            elif member.flow == Out:
                connect(m, getattr(scheduler, name), flipped(getattr(self, name)))
            else:
                connect(m, flipped(getattr(self, name)), getattr(scheduler, name))
        return m
