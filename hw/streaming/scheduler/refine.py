"""Run-time refinement: which route to relieve, and which chunk to move."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import Decision, Route, schedule_policy
from hw.streaming.scheduler.actor import Call, actor_members, lesser, read, rewrite, say
from hw.streaming.scheduler.compare import products
from hw.streaming.scheduler.layouts import (
    Source,
    Task,
    Wanted,
    grid,
    load_bits,
    scan_request,
    scan_result,
)
from hw.streaming.scheduler.meter import RATIO_BITS, RATIO_ONE

__all__ = ["Refiner"]


class Refiner(wiring.Component):
    """Compares the routes' speeds, prefetches for the link, and moves a chunk at most.

    **Latency**: from ``start`` to ``done`` at most 115 + 11 * scan cycles under PAPER, besides what
    it calls of `Stages` and `Dispatcher` and 1 per list entry passed by the tail; under STRICT
    another 3 * heads * scan.

    **Throughput**: one call at a time.

    **Numerics**: ``golden.streaming.refine.Refinement``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    row, effects : see `actor_members`
    call : ``In(Call())``
    scan, compare, dispatch, aim : ``Out(Call(...))``
        To `Scan`, `ProductCompare`, `Dispatcher` and `Stages`.
    policy : ``In(schedule_policy(config))``
    grid : ``In(grid(config))``
    opens : ``In(1)``
        A stage opens: its moves are left.
    prefetch : ``In(1)``
    full : ``In(2)``
    measure : ``Out(1)``, busy : ``In(2)``, estimates : ``In(16).array(2)``
        Of the routes' `Meter`.
    loads : ``In(ArrayLayout(load_bits(config), 2))``
    head, tail : ``In(chunk_bits + 1)``
        Of the compute list.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Refiner", config)
        bits, routes = config.chunk_bits + 1, len(Route)
        super().__init__({
            **actor_members(config),
            "call": In(Call()),
            "scan": Out(Call(scan_request(config), scan_result(config))),
            "compare": Out(Call(products(load_bits(config)), 1)),
            "dispatch": Out(Call()),
            "aim": Out(Call(1)),
            "policy": In(schedule_policy(config)),
            "grid": In(grid(config)),
            "opens": In(1),
            "prefetch": In(1),
            "full": In(routes),
            "measure": Out(1), "busy": In(routes), "estimates": In(RATIO_BITS).array(routes),
            "loads": In(data.ArrayLayout(load_bits(config), routes)),
            "head": In(bits), "tail": In(bits),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, policy = self.config, self.policy
        slow_stream, slow_compute = Signal(), Signal()
        moves = Signal(len(policy.cap))
        chunk = Signal(config.chunk_bits)       # candidate for a move
        taker = Signal(Route)
        columns_count = Signal(len(self.grid.columns))
        m.d.sync += columns_count.eq(lesser(self.grid.columns, policy.scan))
        with m.If(self.opens):
            m.d.sync += moves.eq(policy.cap)

        with m.FSM(name="state"):
            with m.State("IDLE"):
                with m.If(self.call.start):
                    m.next = "MEASURE"
            with m.State("MEASURE"):
                with m.If(self.busy == 0):
                    m.d.comb += self.measure.eq(1)
                    m.next = "MEASURED"
            with m.State("MEASURED"):
                with m.If(self.busy == 0):
                    m.next = "STREAM_SLOWER"
            with m.State("STREAM_SLOWER"):
                self._compare_speed(m, 0, slow_stream, then="COMPUTE_SLOWER")
            with m.State("COMPUTE_SLOWER"):
                self._compare_speed(m, 1, slow_compute, then="PREFETCH")
            with m.State("PREFETCH"):
                m.next = "TO_STREAM"
                with m.If(self.prefetch != slow_compute):
                    m.next = "AIM"
            with m.State("AIM"):
                m.d.comb += [self.aim.start.eq(1), self.aim.argument.eq(slow_compute)]
                with m.If(self.aim.done):
                    m.next = "PREFETCHED"
            with m.State("PREFETCHED"):
                m.d.comb += self.dispatch.start.eq(1)
                with m.If(self.dispatch.done):
                    m.next = "TO_STREAM"
            with m.State("TO_STREAM"):
                m.d.sync += taker.eq(Route.STREAM)
                m.next = "TO_COMPUTE"
                with m.If(moves == 0):
                    m.next = "DONE"
                with m.Elif(~self.full[0] & (slow_compute | policy.idle)):
                    m.next = "TAIL"
            self._find_streamable(m, chunk)
            with m.State("TO_COMPUTE"):
                m.d.sync += taker.eq(Route.COMPUTE)
                m.next = "DONE"
                with m.If(slow_stream | policy.idle & ~self.full[1]):
                    m.next = "COLUMNS"
            with m.State("COLUMNS"):
                self._find_computable(m, chunk, columns_count)
            with m.State("SHOW"):
                m.d.comb += read(self, chunk)
                m.next = "GUARD"
            with m.State("GUARD"):
                self._guard(m, taker)
            with m.State("MOVE"):
                self._move(m, taker)
                m.d.sync += moves.eq(moves - 1)
                m.next = "DISPATCH"
            with m.State("DISPATCH"):
                m.d.comb += self.dispatch.start.eq(1)
                with m.If(self.dispatch.done):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.call.done.eq(1)
                m.next = "IDLE"
        return m

    def _compare_speed(self, m, route, is_slower, then):
        first, second = self.compare.argument.first, self.compare.argument.second
        m.d.comb += [
            self.compare.start.eq(1),
            first.ratio.eq(self.estimates[1 - route]),
            first.amount.eq(RATIO_ONE + self.policy.margin),
            second.ratio.eq(self.estimates[route]),
            second.amount.eq(RATIO_ONE),
        ]
        with m.If(self.compare.done):
            m.d.sync += is_slower.eq(self.compare.result)
            m.next = then

    def _find_streamable(self, m, chunk):
        """From the tail of the compute list downwards, the first chunk whose state none needs."""
        config, scan, word = self.config, self.scan, self.row.word
        bits = config.chunk_bits + 1
        top, bottom = Signal(bits), Signal(bits)   # what is left to search
        user = Signal(bits)
        request = scan.argument
        position = Signal(bits)
        m.d.comb += position.eq(
            Mux(scan.result.found, scan.result.index + 1, self.head))
        with m.State("TAIL"):
            m.d.comb += [
                scan.start.eq(1),
                request.source.eq(Source.LIST), request.route.eq(Route.COMPUTE),
                request.wanted.eq(Wanted.WAITING), request.down.eq(1),
                request.first.eq(self.tail - 1),
                request.count.eq(Mux(self.tail > self.head, self.tail - self.head, 0)),
            ]
            m.d.sync += top.eq(position)
            with m.If(scan.done):
                with m.If(self.tail > self.head):
                    m.d.comb += [self.effects.set_tail.eq(1), self.effects.position.eq(position)]
                    m.next = "BOTTOM"
                with m.Else():
                    m.next = "TO_COMPUTE"
        with m.State("BOTTOM"):
            m.d.sync += bottom.eq(top - lesser(top - self.head, self.policy.scan))
            m.next = "STREAMABLE"
        with m.State("STREAMABLE"):
            m.d.comb += [
                scan.start.eq(1),
                request.source.eq(Source.LIST), request.route.eq(Route.COMPUTE),
                request.wanted.eq(Wanted.STREAMABLE), request.down.eq(1),
                request.first.eq(top - 1), request.count.eq(top - bottom),
            ]
            m.d.sync += [chunk.eq(self.row.chunk), user.eq(1)]
            with m.If(scan.done):
                m.d.sync += top.eq(scan.result.index)
                with m.If(~scan.result.found):
                    m.next = "TO_COMPUTE"
                with m.Elif(word.last_layer):
                    m.next = "GUARD"
                with m.Else():
                    first = self.row.chunk - Mux(self.policy.rule, self.row.place.head, 0)
                    m.d.comb += read(self, first + self.grid.heads)
                    m.next = "USERS"
        with m.State("USERS"), m.If(self.row.shown):
            m.d.comb += read(self, self.row.chunk + 1)
            m.d.sync += user.eq(user + 1)
            with m.If(word.tasks[1] == Task.WAIT):
                m.next = "STREAMABLE"
            with m.Elif(~self.policy.rule | (user == self.grid.heads)):
                m.next = "SHOW"

    def _find_computable(self, m, chunk, count):
        """From the column at which the last search ended, the first chunk that may be computed."""
        scan, columns = self.scan, self.grid.columns
        bits = len(columns)
        column = Signal(bits)
        request, result = scan.argument, scan.result
        passed = Signal(bits + 1)
        m.d.comb += [
            scan.start.eq(1),
            request.source.eq(Source.COLUMNS), request.route.eq(Route.STREAM),
            request.wanted.eq(Wanted.COMPUTABLE),
            request.first.eq(column), request.count.eq(count),
            passed.eq(column + count),
        ]
        with m.If(scan.done):
            with m.If(result.found):
                m.d.sync += [column.eq(result.index), chunk.eq(self.row.chunk)]
                m.next = "GUARD"
            with m.Elif(result.near.found):
                m.d.sync += [column.eq(result.near.index), chunk.eq(result.near.chunk)]
                m.next = "SHOW"
            with m.Else():
                m.d.sync += column.eq(Mux(passed >= columns, passed - columns, passed))
                m.next = "DONE"

    def _guard(self, m, taker):
        """Whether the taker, with the chunk, is expected to end before the giver would without."""
        first, second = self.compare.argument.first, self.compare.argument.second
        is_compute = taker == Route.COMPUTE
        m.d.comb += [
            self.compare.start.eq(self.policy.guard & self.row.shown),
            first.ratio.eq(Mux(is_compute, self.estimates[1], self.estimates[0])),
            first.amount.eq(Mux(is_compute, self.loads[1] + self.row.ticks[1],
                                self.loads[0] + self.row.ticks[0])),
            second.ratio.eq(Mux(is_compute, self.estimates[0], self.estimates[1])),
            second.amount.eq(Mux(is_compute, self.loads[0], self.loads[1])),
        ]
        with m.If(~self.policy.guard & self.row.shown):
            m.next = "MOVE"
        with m.Elif(self.compare.done):
            with m.If(self.compare.result):
                m.next = "MOVE"
            with m.Elif(is_compute):
                m.next = "DONE"
            with m.Else():
                m.next = "TO_COMPUTE"

    def _move(self, m, taker):
        with m.If(taker == Route.COMPUTE):
            self._hand_over(m, 1, {"stream": Task.NONE, "compute": Task.WAIT},
                            Decision.MOVE_TO_COMPUTE)
        with m.Else():
            self._hand_over(m, 0, {"compute": Task.NONE, "stream": Task.WAIT},
                            Decision.MOVE_TO_STREAM)

    def _hand_over(self, m, route, tasks, decision):
        queued = self.row.word.queued
        m.d.comb += [
            *rewrite(self, moved=1, queued=queued | 1 << route, **tasks),
            self.effects.push[route].eq(~queued[route]),
            *say(self, decision),
        ]
