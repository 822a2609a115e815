"""Which event comes next."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import TICK_BITS, Route, route_answer, schedule_policy
from hw.streaming.scheduler.actor import Call
from hw.streaming.scheduler.layouts import OUTSTANDING_MAX, Event, flight, happening

__all__ = ["EventPicker"]

GOOD = (Event.LINK_DONE, Event.COMPUTE_DONE)
BAD = (Event.LINK_FAILED, Event.COMPUTE_FAILED)
EXPIRED = (Event.LINK_EXPIRED, Event.COMPUTE_EXPIRED)


class EventPicker(wiring.Component):
    """Waits for the next event: an answer, a request that has expired, or the timer.

    Answers go first, those of the link before those of computing. While none comes, all requests
    in flight are looked at again and again, oldest first, by the time at which the look began. The
    event's time is that at which an answer was taken, or the look began.

    **Latency**: 2 cycles from an answer to ``done``. An expiry is seen within 3 + 2 * n cycles,
    n the larger number of requests in flight on a route, at least 1.

    **Throughput**: an event per call.

    **Numerics**: ``golden.streaming.runtime.Scheduler.expiry``, and docs/scheduling.md, section 5,
    for the order of events.

    **Errors**: none. While no job runs, answers are taken and dropped.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    policy : ``In(schedule_policy(config))``
    running : ``In(1)``
        A job runs. The first call of a job gives START.
    now : ``In(32)``
    i : ``In(stream.Signature(route_answer(config))).array(2)``
        Answers, by route.
    index : ``Out(range(16))``, seen : ``In(flight(config)).array(2)``, counts :
        ``In(range(17)).array(2)``
        Requests in flight, by route.
    call : ``In(Call(None, happening(config)))``
    time : ``Out(32)``
        Of the event that was given last.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("EventPicker", config)
        routes = len(Route)
        super().__init__({
            "policy": In(schedule_policy(config)),
            "running": In(1),
            "now": In(TICK_BITS),
            "i": In(stream.Signature(route_answer(config))).array(routes),
            "index": Out(range(OUTSTANDING_MAX)),
            "seen": In(flight(config)).array(routes),
            "counts": In(range(OUTSTANDING_MAX + 1)).array(routes),
            "call": In(Call(None, happening(config))),
            "time": Out(TICK_BITS),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        result = Signal(happening(self.config))
        begun = Signal(TICK_BITS)          # time of the look at what is in flight
        has_started = Signal()
        next_timer = Signal(TICK_BITS + 1)
        found = [Signal(flight(self.config), name=f"found_{route.name}") for route in Route]
        has_found = [Signal(name=f"has_found_{route.name}") for route in Route]
        m.d.comb += self.call.result.eq(result)

        with m.FSM(name="state"):
            with m.State("ANSWERS"):
                m.d.sync += [begun.eq(self.now), self.index.eq(0)]
                m.d.sync += [signal.eq(0) for signal in has_found]
                with m.If(~self.running):
                    m.d.comb += [answers.ready.eq(1) for answers in self.i]
                with m.Elif(self.call.start):
                    with m.If(~has_started):
                        self._give(m, result, Event.START, self.now)
                        m.d.sync += [
                            has_started.eq(1),
                            next_timer.eq(self.now + self.policy.period),
                        ]
                    with m.Elif(self.i[0].valid):
                        self._take(m, result, 0)
                    with m.Elif(self.i[1].valid):
                        self._take(m, result, 1)
                    with m.Else():
                        m.next = "LOOK"
            with m.State("LOOK"):
                self._look(m, begun, found, has_found)
            with m.State("DECIDE"):
                m.next = "ANSWERS"
                with m.If(self.i[0].valid | self.i[1].valid):
                    pass   # they go first
                with m.Elif(has_found[0]):
                    self._expire(m, result, 0, found[0], begun)
                with m.Elif(has_found[1]):
                    self._expire(m, result, 1, found[1], begun)
                with m.Elif((self.policy.period != 0) & (next_timer <= begun)):
                    self._give(m, result, Event.TIMER, begun)
                    m.d.sync += next_timer.eq(next_timer + self.policy.period)
            with m.State("DONE"):
                m.d.comb += self.call.done.eq(1)
                m.next = "ANSWERS"
        return m

    def _give(self, m, result, event, time, chunk=0):
        m.d.sync += [result.event.eq(event), result.chunk.eq(chunk), self.time.eq(time)]
        m.next = "DONE"

    def _take(self, m, result, route):
        answer = self.i[route]
        m.d.comb += answer.ready.eq(1)
        self._give(m, result, Mux(answer.payload.good, GOOD[route], BAD[route]), self.now,
                   answer.payload.chunk)

    def _expire(self, m, result, route, found, begun):
        self._give(m, result, EXPIRED[route], begun, found.chunk)
        m.d.sync += [
            result.late.eq(found.late_at <= begun),
            result.silent.eq(found.silent_at <= begun),
        ]

    def _look(self, m, begun, found, has_found):
        m.d.sync += self.index.eq(self.index + 1)
        has_more = 0
        for route in range(len(Route)):
            seen, count = self.seen[route], self.counts[route]
            expired = (seen.late_at <= begun) | (seen.silent_at <= begun)
            with m.If((self.index < count) & ~has_found[route]):
                m.d.sync += [found[route].eq(seen), has_found[route].eq(expired)]
            has_more |= self.index + 1 < count
        with m.If(~has_more):
            m.next = "DECIDE"
