"""Reacts to one event after the other."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import Decision, Route, schedule_policy
from hw.streaming.scheduler.actor import Call, actor_members, read, rewrite, say
from hw.streaming.scheduler.layouts import (
    OUTSTANDING_MAX,
    Event,
    Source,
    Task,
    Wanted,
    happening,
    scan_request,
    scan_result,
)
from hw.streaming.scheduler.recovery import recovery_call

__all__ = ["Reactor"]

LINK, COMPUTE = 0b01, 0b10   # masks of routes


def _call(m, call, then):
    m.d.comb += call.start.eq(1)
    with m.If(call.done):
        m.next = then


class Reactor(wiring.Component):
    """Takes an event with all that follows from it, then the next, until the job has ended.

    **Latency**: see `RouteScheduler`.

    **Throughput**: one event at a time.

    **Numerics**: ``golden.streaming.runtime.Scheduler.react``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    row, effects : see `actor_members`
    events, recovery, needs, open_stage, advance, dispatch, refine, scan : ``Out(Call(...))``
        To `EventPicker`, `Recovery`, `Needs`, `Stages`, `Dispatcher`, `Refiner` and `Scan`.
    policy : ``In(schedule_policy(config))``
    running, room, is_resolved, is_last : ``In(1)``
        A job runs; the log has room; no chunk is unresolved; the current stage is the last.
    flying : ``In(range(17)).array(2)``, busy : ``In(2)``
        Of the routes' `Flying`.
    level, head, count : ``In(chunk_bits + 1)``
        Of the `Work` of computing.
    is_clear : ``In(1)``
        Nothing is to be given up on the link.
    happens : ``Out(1)``
        An event has been taken up; high for one cycle, in which ``events.result`` is it.
    reacting : ``Out(1)``
        From the cycle after ``happens`` until all that follows from the event is done.
    expires : ``Out(1)``
        The event being absorbed is an expiry.
    ended : ``Out(1)``
        All chunks are resolved and nothing is in flight.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Reactor", config)
        bits, scan = config.chunk_bits + 1, Call(scan_request(config), scan_result(config))
        super().__init__({
            **actor_members(config),
            "events": Out(Call(None, happening(config))),
            "recovery": Out(recovery_call()),
            "needs": Out(Call(data.StructLayout({"present": 1, "computed": 1}))),
            "open_stage": Out(Call()), "advance": Out(Call()), "dispatch": Out(Call()),
            "refine": Out(Call()), "scan": Out(scan),
            "policy": In(schedule_policy(config)),
            "running": In(1), "room": In(1), "is_resolved": In(1), "is_last": In(1),
            "flying": In(range(OUTSTANDING_MAX + 1)).array(len(Route)), "busy": In(len(Route)),
            "level": In(bits), "head": In(bits), "count": In(bits),
            "is_clear": In(1),
            "happens": Out(1), "reacting": Out(1), "expires": Out(1), "ended": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        event = Signal(happening(self.config))
        measured = Signal()        # the event says how fast a route is, and that was not used yet
        unblocks = Signal()        # the event is absorbed; what remains is to get things moving
        is_idle = (self.flying[0] == 0) & (self.flying[1] == 0) & (self.busy == 0)
        m.d.comb += self.expires.eq(event.event == Event.LINK_EXPIRED)

        with m.FSM(name="state") as fsm:
            m.d.comb += self.reacting.eq(~fsm.ongoing("NEXT") & ~fsm.ongoing("EVENT"))
            with m.State("NEXT"):
                m.d.sync += [measured.eq(0), unblocks.eq(0)]
                with m.If(self.running & self.room & (self.busy == 0)):
                    m.next = "EVENT"
            with m.State("EVENT"):
                self._take_event(m, event)
            with m.State("START"):
                _call(m, self.open_stage, then="ADVANCE")
            self._absorb_link(m, event, measured)
            self._absorb_compute(m, event, measured, unblocks)
            with m.State("ADVANCE"):
                _call(m, self.advance, then="DISPATCH")
            with m.State("DISPATCH"):
                _call(m, self.dispatch, then="DISPATCHED")
            with m.State("DISPATCHED"):
                m.d.sync += measured.eq(0)
                m.next = "REST"
                with m.If(measured & self.policy.refine & ~self.is_resolved):
                    m.next = "REFINE"
            with m.State("REFINE"):
                _call(m, self.refine, then="REST")
            with m.State("REST"):
                m.d.sync += unblocks.eq(1)
                with m.If((self.busy == 0) & ~is_idle):
                    m.next = "NEXT"
                with m.Elif(is_idle & self.is_resolved & self.is_clear):
                    m.next = "ENDED"
                with m.Elif(is_idle & ~self.is_resolved & self.room):
                    m.next = "BLOCKED"
                    with m.If(~self.is_last):
                        m.next = "OPEN"
            with m.State("ENDED"):
                m.d.comb += self.ended.eq(1)
            with m.State("OPEN"):
                _call(m, self.open_stage, then="DISPATCH")
            with m.State("BLOCKED"):
                self._give_up_blocked(m, Source.QUEUE, 0, self.level, otherwise="BLOCKED_LISTED")
            with m.State("BLOCKED_LISTED"):
                self._give_up_blocked(m, Source.LIST, self.head, self.count - self.head,
                                      otherwise="NEXT")
        return m

    def _take_event(self, m, event):
        found = self.events.result
        m.d.comb += self.events.start.eq(1)
        m.d.sync += event.eq(found)
        with m.If(self.events.done):
            m.d.comb += [self.happens.eq(1), *read(self, found.chunk)]
            with m.Switch(found.event):
                with m.Case(Event.START):
                    m.next = "START"
                with m.Case(Event.TIMER):
                    m.next = "TIMER"
                with m.Case(Event.LINK_DONE, Event.LINK_FAILED, Event.LINK_EXPIRED):
                    m.next = "LINK"
                with m.Default():
                    m.next = "COMPUTE"

    def _absorb_link(self, m, event, measured):
        word = self.row.word
        is_done = event.event == Event.LINK_DONE
        is_late = (event.event == Event.LINK_EXPIRED) & event.late
        with m.State("TIMER"):
            m.d.sync += measured.eq(1)
            m.next = "ADVANCE"
        with m.State("LINK"), m.If(self.row.shown):
            with m.If(word.tasks[0] != Task.FLY):
                self._drop(m)
            with m.Elif(is_done):
                m.d.comb += rewrite(self, stream=Task.DONE, resolved=1)
                self._land(m, LINK, 1, measured)
                self._resolve(m, Decision.PRESENT)
                m.next = "PRESENT"
            with m.Elif(is_late & ~event.silent):
                m.next = "MAY_EXTEND"
            with m.Else():
                m.next = "FAILED"
        with m.State("MAY_EXTEND"):
            m.d.comb += self.recovery.start.eq(1)
            with m.If(self.recovery.done):
                m.d.comb += read(self, event.chunk)
                m.next = "EXTEND"
                with m.If(self.recovery.result.exists):
                    m.next = "FAILED"
        with m.State("EXTEND"), m.If(self.row.shown):
            m.d.comb += [self.effects.waive.eq(1), self.effects.extend.eq(1),
                         *say(self, Decision.EXTEND)]
            m.next = "ADVANCE"
        with m.State("PRESENT"):
            m.d.comb += self.needs.argument.present.eq(1)
            _call(m, self.needs, then="ADVANCE")
        with m.State("FAILED"), m.If(self.row.shown):
            m.d.comb += [
                *rewrite(self, stream=Task.FAILED),
                *say(self, Mux(is_late, Decision.STREAM_LATE, Decision.STREAM_FAILED)),
            ]
            self._land(m, LINK, event.event != Event.LINK_FAILED, measured)
            m.next = "SHOW_FAILED"
        with m.State("SHOW_FAILED"):
            # The request that has ended is to be gone before a new one enters.
            with m.If(~self.busy[0]):
                m.d.comb += read(self, event.chunk)
                m.next = "RETRY"
        with m.State("RETRY"), m.If(self.row.shown):
            m.next = "RECOVER"
            with m.If((word.retries != 0) & ~is_late & (word.tasks[1] == Task.NONE)):
                m.d.comb += [
                    *rewrite(self, stream=Task.FLY, retries=word.retries - 1),
                    *say(self, Decision.RETRY),
                ]
                m.next = "AGAIN"
        with m.State("AGAIN"):
            m.d.comb += [self.effects.depart.eq(LINK), *say(self, Decision.REQUEST_STREAM)]
            m.next = "ADVANCE"
        with m.State("RECOVER"):
            m.d.comb += [self.recovery.start.eq(1), self.recovery.argument.runs.eq(1)]
            with m.If(self.recovery.done):
                m.d.comb += read(self, event.chunk)
                m.next = "LOST"
                with m.If(self.recovery.result.exists):
                    m.next = "ADVANCE"

    def _absorb_compute(self, m, event, measured, unblocks):
        word = self.row.word
        is_new = Signal()
        with m.State("COMPUTE"), m.If(self.row.shown):
            with m.If(word.tasks[1] != Task.FLY):
                self._drop(m)
            with m.Elif(event.event == Event.COMPUTE_DONE):
                m.d.comb += [*rewrite(self, compute=Task.DONE, resolved=1),
                             self.effects.deepen.eq(1)]
                m.d.sync += is_new.eq(~word.resolved)
                self._land(m, COMPUTE, 1, measured)
                with m.If(word.resolved):
                    m.d.comb += say(self, Decision.STATE_DONE)
                with m.Else():
                    self._resolve(m, Decision.PRESENT)
                m.next = "COMPUTED"
            with m.Else():
                m.d.comb += [*rewrite(self, compute=Task.FAILED),
                             *say(self, Decision.COMPUTE_FAILED)]
                self._land(m, COMPUTE, event.event == Event.COMPUTE_EXPIRED, measured)
                m.next = "GIVE_UP"
        with m.State("COMPUTED"):
            m.d.comb += [self.needs.argument.present.eq(is_new),
                         self.needs.argument.computed.eq(1)]
            _call(m, self.needs, then="ADVANCE")
        with m.State("GIVE_UP"):
            m.d.comb += read(self, self.row.chunk)
            m.next = "FALL_BACK"
        with m.State("FALL_BACK"), m.If(self.row.shown):
            m.next = "ADVANCE"
            with m.If(unblocks):
                m.next = "DISPATCH"
            with m.If(~word.resolved & (word.tasks[0] == Task.NONE)):
                m.d.comb += [
                    *rewrite(self, stream=Task.WAIT, queued=word.queued | LINK),
                    self.effects.push[0].eq(~word.queued[0]),
                    *say(self, Decision.FALL_BACK),
                ]
            with m.Elif(~word.resolved & (word.tasks[0] == Task.FAILED)):
                self._lose(m)
        with m.State("LOST"), m.If(self.row.shown):
            self._lose(m)
            m.next = "ADVANCE"

    def _give_up_blocked(self, m, source, first, count, otherwise):
        """Nothing may start any more: the first chunk that waits to be computed never will."""
        request = self.scan.argument
        m.d.comb += [
            self.scan.start.eq(1),
            request.source.eq(source), request.route.eq(Route.COMPUTE),
            request.wanted.eq(Wanted.WAITING),
            request.first.eq(first), request.count.eq(count),
        ]
        with m.If(self.scan.done):
            m.next = otherwise
            with m.If(self.scan.result.found):
                m.d.comb += [*rewrite(self, compute=Task.FAILED),
                             *say(self, Decision.COMPUTE_BLOCKED)]
                m.next = "GIVE_UP"

    def _drop(self, m):
        m.d.comb += say(self, Decision.DROP)
        m.next = "NEXT"

    def _land(self, m, route, counts, measured):
        m.d.comb += [self.effects.land.eq(route), self.effects.measured.eq(counts)]
        m.d.sync += measured.eq(counts)

    def _resolve(self, m, decision):
        m.d.comb += [self.effects.resolve.eq(1), *say(self, decision)]

    def _lose(self, m):
        m.d.comb += rewrite(self, resolved=1)
        self._resolve(m, Decision.LOST)
