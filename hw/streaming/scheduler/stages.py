"""Stages: which are open, and when the next one opens."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.sram import Sram
from hw.streaming.checks import check_config
from hw.streaming.layouts import STAGE_BITS, Decision, Route, schedule_policy
from hw.streaming.scheduler.actor import Call, actor_members, lesser, say
from hw.streaming.scheduler.layouts import STAGES_MAX

__all__ = ["Stages"]


class Stages(wiring.Component):
    """Counts the unresolved chunks of each stage, opens stages and sets the routes' horizons.

    **Latency**: from ``start`` to ``done``: ``aim`` 3 cycles, ``open`` 5, ``advance`` 5 and 7 more
    per stage opened, if the log has room. After a reset 256 cycles until ``ready``.

    **Throughput**: one call at a time; a chunk entered or resolved every other cycle.

    **Numerics**: ``golden.streaming.runtime.Scheduler``: stages, horizons, prefetch.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    row, effects : see `actor_members`
    policy : ``In(schedule_policy(config))``
    room : ``In(1)``
        The log has room.
    enter, resolve : ``In(1)``, entered, resolved : ``In(STAGE_BITS)``
        A chunk of a stage is loaded; is present or lost.
    open : ``In(Call())``
        Open the next stage, whatever is unresolved.
    advance : ``In(Call())``
        Open stages while the current one has nothing unresolved.
    aim : ``In(Call(1))``
        Set ``prefetch`` to the argument, and the horizons accordingly.
    opens : ``Out(1)``
        High for a cycle when a stage opens.
    stage : ``Out(STAGE_BITS)``
    is_last : ``Out(1)``
        ``stage`` is the job's last.
    prefetch : ``Out(1)``
    set_horizons : ``Out(1)``, horizons : ``Out(ArrayLayout(STAGE_BITS, 2))``
        To the routes' `Work`.
    ready : ``Out(1)``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Stages", config)
        super().__init__({
            **actor_members(config),
            "policy": In(schedule_policy(config)),
            "resolve": In(1), "resolved": In(STAGE_BITS),
            "room": In(1),
            "enter": In(1), "entered": In(STAGE_BITS),
            "open": In(Call()), "advance": In(Call()), "aim": In(Call(1)),
            "opens": Out(1),
            "stage": Out(STAGE_BITS, init=STAGES_MAX - 1),   # before the first
            "is_last": Out(1),
            "prefetch": Out(1),
            "set_horizons": Out(1), "horizons": Out(data.ArrayLayout(STAGE_BITS, len(Route))),
            "ready": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        unresolved = self._count(m)
        advances, is_done = Signal(), Signal()
        m.d.comb += self.is_last.eq(self.stage + 1 == self.policy.stages)
        with m.FSM(name="state"):
            with m.State("IDLE"):
                m.d.sync += advances.eq(self.advance.start)
                with m.If(self.open.start):
                    m.next = "OPEN"
                with m.Elif(self.advance.start):
                    m.next = "SETTLE"
                with m.Elif(self.aim.start):
                    m.d.sync += self.prefetch.eq(self.aim.argument)
                    m.next = "SUM"
            with m.State("SETTLE"):
                m.next = "LOOK"   # the last chunk resolved is counted meanwhile
            with m.State("LOOK"):
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.sync += is_done.eq(unresolved == 0)
                m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(is_done & ~self.is_last):
                    m.next = "OPEN"
                with m.Else():
                    m.next = "DONE"
            with m.State("OPEN"):
                m.d.comb += self.opens.eq(1)
                m.d.sync += self.stage.eq(self.stage + 1)
                m.next = "SAY"
            with m.State("SAY"):
                with m.If(self.room):
                    m.d.comb += say(self, Decision.STAGE)
                    m.next = "SUM"
            with m.State("SUM"):
                self._sum(m)
                m.next = "AIM"
            with m.State("AIM"):
                m.d.comb += self.set_horizons.eq(1)
                with m.If(advances):
                    m.next = "LOOK"
                with m.Else():
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += [call.done.eq(1) for call in (self.open, self.advance, self.aim)]
                m.next = "IDLE"
        return m

    def _sum(self, m):
        last = self.policy.stages - 1
        stream = self.stage + self.policy.stream_ahead + self.prefetch
        compute = self.stage + self.policy.compute_ahead
        m.d.sync += [
            self.horizons[0].eq(lesser(stream, last)),
            self.horizons[1].eq(lesser(compute, last)),
        ]

    def _count(self, m):
        """Unresolved chunks of the current stage, while none changes."""
        bits = self.config.chunk_bits + 1
        m.submodules.counts = counts = Sram(bits, depth=STAGES_MAX)
        cleared = Signal(range(STAGES_MAX + 1))
        changes, rises = Signal(), Signal()
        stage = Signal(STAGE_BITS)
        m.d.sync += [
            changes.eq(self.enter | self.resolve),
            rises.eq(self.enter),
            stage.eq(counts.read.addr),
        ]
        m.d.comb += [
            self.ready.eq(cleared == STAGES_MAX),
            counts.read.en.eq(1),
            counts.read.addr.eq(Mux(self.enter, self.entered,
                                    Mux(self.resolve, self.resolved, self.stage))),
        ]
        with m.If(~self.ready):
            m.d.comb += [counts.write.en.eq(1), counts.write.addr.eq(cleared)]
            m.d.sync += cleared.eq(cleared + 1)
        with m.Else():
            m.d.comb += [
                counts.write.en.eq(changes),
                counts.write.addr.eq(stage),
                counts.write.data.eq(Mux(rises, counts.read.data + 1, counts.read.data - 1)),
            ]
        return counts.read.data
