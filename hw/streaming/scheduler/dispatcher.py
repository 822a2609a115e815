"""Sends out what may start."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import STAGE_BITS, TICK_BITS, Decision, Route, schedule_policy
from hw.streaming.scheduler.actor import Call, actor_members, lesser, read, rewrite, say
from hw.streaming.scheduler.layouts import (
    OUTSTANDING_MAX,
    Source,
    Task,
    Wanted,
    scan_request,
    scan_result,
)
from hw.streaming.scheduler.recovery import recovery_call

__all__ = ["Dispatcher"]


class Dispatcher(wiring.Component):
    """Requests chunks while they may start and the routes have free slots, the link first.

    **Latency**: from ``start`` to ``done`` 4 cycles if both routes are full. A request on the link
    takes at most 19 cycles, one on the compute port 31 and 1 per candidate looked at before it; a
    look at n candidates of which none is ready takes 27 + n. To that come 8 cycles per queue entry
    and 1 per list entry dropped, once for each, and for a late chunk its `Recovery`.

    **Throughput**: one call at a time.

    **Numerics**: dispatch of ``golden.streaming.runtime.Scheduler``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    row, effects : see `actor_members`
    call : ``In(Call())``
    scan, recovery : ``Out(Call(...))``
        To `Scan` and `Recovery`.
    policy : ``In(schedule_policy(config))``
    now : ``In(32)``
    room : ``In(1)``
        The log has room.
    is_resolved : ``In(1)``
        No chunk is unresolved.
    counts, heads, levels : ``In(chunk_bits + 1).array(2)``
        Of the routes' `Work`.
    flying : ``In(range(17)).array(2)``, busy : ``In(2)``
        Of the routes' `Flying`.
    horizons : ``In(STAGE_BITS).array(2)``
    full : ``Out(2)``
        Routes that have no free slot.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Dispatcher", config)
        bits, routes = config.chunk_bits + 1, len(Route)
        super().__init__({
            **actor_members(config),
            "call": In(Call()),
            "scan": Out(Call(scan_request(config), scan_result(config))),
            "recovery": Out(recovery_call()),
            "policy": In(schedule_policy(config)),
            "now": In(TICK_BITS),
            "room": In(1),
            "is_resolved": In(1),
            "counts": In(bits).array(routes), "heads": In(bits).array(routes),
            "levels": In(bits).array(routes),
            "flying": In(range(OUTSTANDING_MAX + 1)).array(routes), "busy": In(routes),
            "horizons": In(STAGE_BITS).array(routes),
            "full": Out(routes),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, scan = self.config, self.scan
        route = Signal(Route)
        is_compute = route == Route.COMPUTE
        has_listed, listed = Signal(), Signal(config.chunk_bits)   # first of the list that waits
        is_front = Signal()    # the candidate is the queue's front
        head, level, count, rest = (Signal(config.chunk_bits + 1, name=name)
                                    for name in ("head", "level", "count", "rest"))
        m.d.comb += [
            head.eq(Mux(is_compute, self.heads[1], self.heads[0])),
            level.eq(Mux(is_compute, self.levels[1], self.levels[0])),
            count.eq(Mux(is_compute, self.counts[1], self.counts[0])),
            self.full[0].eq(self.flying[0] >= self.policy.stream_outstanding),
            self.full[1].eq(self.flying[1] >= self.policy.compute_outstanding),
        ]

        # Two states at least lie between a change of the head, or of the route, and its use.
        m.d.sync += rest.eq(count - head)
        with m.FSM(name="state"):
            with m.State("IDLE"):
                m.d.sync += route.eq(Route.STREAM)
                with m.If(self.call.start):
                    m.next = "NEXT"
            with m.State("NEXT"):
                with m.If(self.room & ~Mux(is_compute, self.busy[1], self.busy[0])):
                    with m.If(self.is_resolved | Mux(is_compute, self.full[1], self.full[0])):
                        self._leave_route(m, route)
                    with m.Else():
                        m.next = "HEAD"
            with m.State("HEAD"):
                self._scan(m, route, Source.LIST, Wanted.WAITING, head, rest)
                m.d.comb += self.effects.position.eq(
                    Mux(scan.result.found, scan.result.index, count))
                m.d.sync += [has_listed.eq(scan.result.found), listed.eq(self.row.chunk)]
                with m.If(scan.done):
                    m.d.comb += self.effects.set_head.eq(Mux(is_compute, 0b10, 0b01))
                    m.next = "QUEUE"
            with m.State("QUEUE"):
                m.d.sync += is_front.eq(level != 0)
                with m.If(level != 0):
                    self._look_at_front(m, route)
                with m.Elif(is_compute):
                    m.next = "READY_LISTED"
                with m.Elif(has_listed):
                    m.d.comb += read(self, listed)
                    m.next = "LISTED"
                with m.Else():
                    self._leave_route(m, route)
            with m.State("LISTED"), m.If(self.row.shown):
                with m.If(self.row.stage <= self.horizons[0]):
                    m.next = "DEADLINE"
                with m.Else():
                    self._leave_route(m, route)
            with m.State("DEADLINE"):
                self._check_deadline(m)
            with m.State("LATE"), m.If(self.row.shown):
                m.d.comb += [*rewrite(self, stream=Task.FAILED), *say(self, Decision.STREAM_LATE)]
                m.next = "RECOVER"
            with m.State("RECOVER"):
                m.d.comb += [self.recovery.start.eq(1), self.recovery.argument.runs.eq(1)]
                with m.If(self.recovery.done):
                    m.next = "NEXT"
            with m.State("READY_QUEUED"):
                self._scan(m, route, Source.QUEUE, Wanted.READY, 0,
                           lesser(level, self.policy.scan))
                m.d.sync += is_front.eq(scan.result.index == 0)
                with m.If(scan.done):
                    m.next = "READY_LISTED"
                    with m.If(scan.result.found):
                        m.next = "REQUEST"
            with m.State("READY_LISTED"):
                self._scan(m, route, Source.LIST, Wanted.READY, head,
                           lesser(rest, self.policy.scan), bounded=1)
                m.d.sync += is_front.eq(0)
                with m.If(scan.done):
                    with m.If(scan.result.found):
                        m.next = "REQUEST"
                    with m.Else():
                        self._leave_route(m, route)
            with m.State("REQUEST"), m.If(self.row.shown):
                self._request(m, is_compute, is_front)
                m.next = "NEXT"
            with m.State("DONE"):
                m.d.comb += self.call.done.eq(1)
                m.next = "IDLE"
        return m

    def _scan(self, m, route, source, wanted, first, count, bounded=0):
        request = self.scan.argument
        m.d.comb += [
            self.scan.start.eq(1),
            request.source.eq(source), request.route.eq(route), request.wanted.eq(wanted),
            request.first.eq(first), request.count.eq(count), request.bounded.eq(bounded),
        ]

    def _leave_route(self, m, route):
        m.d.sync += route.eq(Route.COMPUTE)
        m.next = "NEXT"
        with m.If(route == Route.COMPUTE):
            m.next = "DONE"

    def _look_at_front(self, m, route):
        """Drop the queue's front until it waits."""
        is_compute = route == Route.COMPUTE
        mask = Mux(is_compute, 0b10, 0b01)
        self._scan(m, route, Source.QUEUE, Wanted.WAITING, 0, 1)
        with m.If(self.scan.done):
            with m.If(~self.scan.result.found):
                m.d.comb += [
                    *rewrite(self, queued=self.row.word.queued & ~mask),
                    self.effects.pop.eq(mask),
                ]
            with m.Elif(is_compute):
                m.next = "READY_QUEUED"
            with m.Else():
                m.next = "DEADLINE"

    def _check_deadline(self, m):
        """A late chunk is requested only if nothing else can bring it. Its row is shown again:
        looking for a chain shows others."""
        chunk, looks = Signal(self.config.chunk_bits), Signal()
        recovery = self.recovery
        with m.If(~looks):
            m.d.sync += chunk.eq(self.row.chunk)
            with m.If(self.row.deadline > self.now):
                m.next = "REQUEST"
            with m.Else():
                m.d.sync += looks.eq(1)
        with m.Else():
            m.d.comb += recovery.start.eq(1)
            with m.If(recovery.done):
                m.d.comb += read(self, chunk)
                m.d.sync += looks.eq(0)
                m.next = "REQUEST"
                with m.If(recovery.result.exists):
                    m.next = "LATE"

    def _request(self, m, is_compute, is_front):
        queued, is_streamed = self.row.word.queued, self.row.word.tasks[0] == Task.DONE
        mask = Mux(is_compute, 0b10, 0b01)
        m.d.comb += [
            self.effects.depart.eq(mask),
            self.effects.pop.eq(Mux(is_front, mask, 0)),
        ]
        left = Mux(is_front, queued & ~mask, queued)
        with m.If(is_compute):
            m.d.comb += rewrite(self, compute=Task.FLY, queued=left)
            with m.If(is_streamed):
                m.d.comb += say(self, Decision.REQUEST_STATE)
            with m.Else():
                m.d.comb += say(self, Decision.REQUEST_COMPUTE)
        with m.Else():
            m.d.comb += [*rewrite(self, stream=Task.FLY, queued=left),
                         *say(self, Decision.REQUEST_STREAM)]
