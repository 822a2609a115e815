"""Wiring of the route scheduler."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.layouts import (
    STAGE_BITS,
    TICK_BITS,
    Decision,
    Route,
    compute_request,
    record,
    route_answer,
    schedule_entry,
    schedule_policy,
)
from hw.streaming.scheduler.actor import join, serve
from hw.streaming.scheduler.columns import Columns
from hw.streaming.scheduler.compare import ProductCompare
from hw.streaming.scheduler.dispatcher import Dispatcher
from hw.streaming.scheduler.events import EventPicker
from hw.streaming.scheduler.layouts import LoadError, effects, event_record, load_bits
from hw.streaming.scheduler.loading import JobLoader
from hw.streaming.scheduler.needs import Needs
from hw.streaming.scheduler.reactor import Reactor
from hw.streaming.scheduler.recovery import Recovery
from hw.streaming.scheduler.refine import Refiner
from hw.streaming.scheduler.scan import Scan
from hw.streaming.scheduler.stages import Stages
from hw.streaming.scheduler.table import ChunkTable
from hw.streaming.scheduler.traffic import Traffic
from hw.streaming.scheduler.work import Work

__all__ = ["SchedulerCore"]

ANSWERS = 4   # of a route that wait while an event is absorbed


class SchedulerCore(wiring.Component):
    """A `RouteScheduler` that lives for one job: it is reset when the job has ended.

    **Latency**: see `RouteScheduler`.

    **Throughput**: one event at a time.

    **Numerics**: ``golden.streaming.runtime.Scheduler``.

    **Errors**: see `RouteScheduler`.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    policy, now, i_entry, start, i_link, i_computed, o_link, o_cancel, loading, stage, event,
    reacting :
        See `RouteScheduler`.
    o_compute : ``Out(stream.Signature(compute_request(config)))``
        ``valid`` may fall without a transfer.
    room : ``In(1)``
        The log takes at least 5 more records.
    log_valid : ``Out(1)``, log : ``Out(record(config))``
        A decision, taken at once.
    begins, refused, ended : ``Out(1)``, error : ``Out(LoadError)``
        The job begins, is refused, has ended; each high for one cycle.
    running : ``Out(1)``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("SchedulerCore", config)
        super().__init__({
            "policy": In(schedule_policy(config)),
            "now": In(TICK_BITS),
            "i_entry": In(stream.Signature(schedule_entry(config))),
            "start": In(1),
            "i_link": In(stream.Signature(route_answer(config))),
            "i_computed": In(stream.Signature(route_answer(config))),
            "o_link": Out(stream.Signature(config.chunk_bits)),
            "o_cancel": Out(stream.Signature(config.chunk_bits)),
            "o_compute": Out(stream.Signature(compute_request(config))),
            "room": In(1), "log_valid": Out(1), "log": Out(record(config)),
            "loading": Out(1), "begins": Out(1), "refused": Out(1), "ended": Out(1),
            "running": Out(1), "error": Out(LoadError),
            "stage": Out(STAGE_BITS),
            "event": Out(event_record(config)), "reacting": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.table = self._table = ChunkTable(config)
        m.submodules.columns = self._columns = Columns(config)
        m.submodules.stages = self._stages = Stages(config)
        m.submodules.loader = self._loader = JobLoader(config)
        m.submodules.picker = self._picker = EventPicker(config)
        m.submodules.scan = self._scan = Scan(config)
        m.submodules.needs = self._needs = Needs(config)
        m.submodules.recovery = self._recovery = Recovery(config)
        m.submodules.dispatcher = self._dispatcher = Dispatcher(config)
        m.submodules.refiner = self._refiner = Refiner(config)
        m.submodules.reactor = self._reactor = Reactor(config)
        m.submodules.traffic = self._traffic = Traffic(config)
        self._works = [Work(config) for _ in Route]
        for route, work in zip(Route, self._works, strict=True):
            m.submodules[f"work_{route.name.lower()}"] = work
        actors = [self._stages, self._loader, self._scan, self._needs, self._recovery,
                  self._dispatcher, self._refiner, self._reactor]
        self._effects = Signal(effects(config))
        m.d.comb += [
            Value.cast(self._effects).eq(join(actor.effects for actor in actors)),
            *(actor.row.eq(self._table.row) for actor in actors),
            *(unit.policy.eq(self.policy) for unit in (
                *actors, self._picker, self._traffic) if hasattr(unit, "policy")),
            *(unit.grid.eq(self._loader.grid) for unit in (
                *actors[2:], self._columns) if hasattr(unit, "grid")),
            *(unit.room.eq(self.room) for unit in actors if hasattr(unit, "room")),
        ]
        self._connect_calls(m)
        self._connect_loading(m)
        self._connect_table(m)
        self._connect_works(m)
        self._connect_traffic(m)
        self._connect_answers(m)
        self._connect_status(m)
        return m

    def _connect_calls(self, m):
        m.submodules.compare = compare = ProductCompare(bits=load_bits(self.config))
        reactor, refiner, dispatcher = self._reactor, self._refiner, self._dispatcher
        serve(m, self._picker.call, [reactor.events])
        serve(m, self._needs.call, [reactor.needs])
        serve(m, self._recovery.call, [reactor.recovery, dispatcher.recovery])
        serve(m, self._scan.call, [reactor.scan, dispatcher.scan, refiner.scan])
        serve(m, dispatcher.call, [reactor.dispatch, refiner.dispatch])
        serve(m, refiner.call, [reactor.refine])
        serve(m, compare.call, [refiner.compare])
        serve(m, self._stages.open, [reactor.open_stage])
        serve(m, self._stages.advance, [reactor.advance])
        serve(m, self._stages.aim, [refiner.aim])

    def _connect_loading(self, m):
        loader, entry = self._loader, self.i_entry.payload
        connect(m, flipped(self.i_entry), loader.i_entry)
        m.d.comb += [
            loader.start.eq(self.start),
            loader.cleared.eq(self._table.ready & self._stages.ready),
            *(port.eq(work.closed)
              for port, work in zip(loader.closed, self._works, strict=True)),
            self._table.enter.eq(loader.enter),
            self._table.entry.eq(entry),
            self._table.settle.eq(loader.settle),
            self._table.place.eq(loader.place),
            self._columns.settle.eq(loader.settle_column),
            self._columns.column.eq(loader.place.column),
            self._stages.enter.eq(loader.enter),
            self._stages.entered.eq(entry.stage),
        ]

    def _connect_table(self, m):
        scan = self._scan
        m.d.comb += [
            self._table.effects.eq(self._effects),
            self._columns.effects.eq(self._effects),
            self._columns.row.eq(self._table.row),
            self._refiner.loads.eq(self._table.loads),
            self._columns.read.eq(scan.read_columns),
            self._columns.index.eq(scan.index),
            scan.is_top.eq(self._columns.is_top),
            scan.entries[-1].eq(self._columns.entry),
        ]

    def _connect_works(self, m):
        scan, loader, stages = self._scan, self._loader, self._stages
        dispatcher, effects = self._dispatcher, self._effects
        for index, work in enumerate(self._works):
            m.d.comb += [
                work.read.eq(scan.read_work[index]),
                work.from_queue.eq(scan.from_queue),
                work.index.eq(scan.index),
                scan.entries[index].eq(work.entry),
                work.chunk.eq(self._table.row.chunk),
                work.append.eq(loader.append[index]),
                work.close.eq(loader.close[index]),
                work.push.eq(effects.push[index]),
                work.pop.eq(effects.pop[index]),
                work.set_head.eq(effects.set_head[index]),
                work.position.eq(effects.position),
                work.aim.eq(stages.set_horizons),
                work.stage.eq(stages.horizons[index]),
                dispatcher.counts[index].eq(work.count),
                dispatcher.heads[index].eq(work.head),
                dispatcher.levels[index].eq(work.level),
                dispatcher.horizons[index].eq(work.horizon),
                scan.horizons[index].eq(work.horizon),
            ]
        computing = self._works[1]
        m.d.comb += [
            computing.set_tail.eq(effects.set_tail),
            self._refiner.head.eq(computing.head), self._refiner.tail.eq(computing.tail),
            self._reactor.level.eq(computing.level),
            self._reactor.head.eq(computing.head), self._reactor.count.eq(computing.count),
        ]

    def _connect_traffic(self, m):
        traffic, picker, reactor = self._traffic, self._picker, self._reactor
        dispatcher, refiner = self._dispatcher, self._refiner
        for name in ("o_link", "o_cancel", "o_compute"):
            connect(m, getattr(traffic, name), flipped(getattr(self, name)))
        for index, count in enumerate(traffic.counts):
            m.d.comb += [
                picker.seen[index].eq(traffic.seen[index]),
                picker.counts[index].eq(count),
                reactor.flying[index].eq(count),
                dispatcher.flying[index].eq(count),
                refiner.estimates[index].eq(traffic.estimates[index]),
            ]
        m.d.comb += [
            traffic.effects.eq(self._effects),
            traffic.row.eq(self._table.row),
            traffic.time.eq(picker.time),
            traffic.begins.eq(self._loader.begins),
            traffic.expires.eq(reactor.expires),
            traffic.hold.eq(picker.i[0].valid),
            traffic.index.eq(picker.index),
            traffic.measure.eq(refiner.measure),
            reactor.busy.eq(traffic.busy),
            reactor.is_clear.eq(traffic.is_clear),
            dispatcher.busy.eq(traffic.busy),
            refiner.busy.eq(traffic.measuring),
            refiner.full.eq(dispatcher.full),
        ]

    def _connect_answers(self, m):
        picker = self._picker
        for index, answers in enumerate((self.i_link, self.i_computed)):
            m.submodules[f"answers_{index}"] = queue = Queue(
                route_answer(self.config), depth=ANSWERS)
            connect(m, flipped(answers), queue.i)
            connect(m, queue.o, picker.i[index])
        m.d.comb += [picker.running.eq(self.running), picker.now.eq(self.now)]

    def _connect_status(self, m):
        stages, loader, reactor = self._stages, self._loader, self._reactor
        left = Signal(self.config.chunk_bits + 1)
        with m.If(loader.begins):
            m.d.sync += left.eq(loader.grid.count)
        with m.Elif(stages.resolve):
            m.d.sync += left.eq(left - 1)
        # A register between a decision and its being counted and told.
        m.d.sync += [
            stages.resolve.eq(self._effects.resolve),
            stages.resolved.eq(self._table.row.stage),
            self.log_valid.eq(self._effects.say),
            self.log.time.eq(self._picker.time),
            self.log.decision.eq(self._effects.decision),
            self.log.chunk.eq(Mux(self._effects.decision == Decision.STAGE, stages.stage,
                                  self._table.row.chunk)),
        ]
        found = self._picker.call.result
        m.d.comb += [
            self._dispatcher.is_resolved.eq(left == 0),
            reactor.is_resolved.eq(left == 0),
            reactor.is_last.eq(stages.is_last),
            reactor.running.eq(loader.running),
            self._dispatcher.now.eq(self._picker.time),
            self._refiner.opens.eq(stages.opens),
            self._refiner.prefetch.eq(stages.prefetch),

            self.event.eq(Cat(reactor.happens, self._picker.time, found.event, found.chunk)),
            self.loading.eq(loader.loading), self.begins.eq(loader.begins),
            self.refused.eq(loader.refused), self.error.eq(loader.error),
            self.running.eq(loader.running), self.ended.eq(reactor.ended),
            self.stage.eq(stages.stage), self.reacting.eq(reactor.reacting),
        ]
