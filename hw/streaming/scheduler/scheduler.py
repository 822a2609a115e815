"""The run-time route scheduler."""

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.layouts import (
    STAGE_BITS,
    TICK_BITS,
    Decision,
    compute_request,
    record,
    route_answer,
    schedule_entry,
    schedule_policy,
)
from hw.streaming.scheduler.core import SchedulerCore
from hw.streaming.scheduler.layouts import LoadError, event_record

__all__ = ["RouteScheduler"]

LOG_DEPTH = 16
LOG_MARGIN = 5   # decisions between two looks at the room that is left


class RouteScheduler(wiring.Component):
    """Takes each decision of docs/scheduling.md, sections 5 and 6, from events as they come.

    *Loading*. While ``loading``, ``i_entry`` takes one entry per chunk, in the order of the lists;
    both lists may be interleaved. Then ``start``, for one cycle, checks the job: it is refused,
    with the reason in ``error`` and nothing started, or begins with START at the time ``now``.
    Deadlines are of the same clock as ``now``.

    *Requests* are offered in the order of the decisions. One that ends, by its time-out or
    deadline, before it is taken is never sent; so ports that take nothing hold nothing up. A link
    request may be withdrawn while it is offered: ``o_link.valid`` then falls without a transfer.
    One that was taken is given up through ``o_cancel``, whose ``ready`` is a promise: no write of
    that chunk is outstanding or to come, and no answer to that request either, except what
    ``i_link`` has taken. Until then events are absorbed, but neither route is asked for anything
    new.

    *The end*. When all chunks are resolved, nothing is in flight and nothing is to be given up,
    ``busy`` falls and ``finished`` is set. ``abort`` ends a job, or its loading, in any state: what
    was decided but not offered is forgotten, and answers still to come are dropped. It waits for
    nothing. ``o_link`` and ``o_cancel`` fall, so that the receive side must be aborted with it;
    what ``o_compute`` offers stays until taken, see ``quiet``. The next job may be loaded when
    ``loading`` rises, after ``max(chunks, 256)`` cycles.

    **Latency**: 2 cycles from an answer to its event. An event that sends nothing then takes at
    most 270 + 17 * scan cycles under PAPER, with ``refine`` off 65 + 2 * scan: with ``scan`` 32 at
    most 814 and 129. Each request sent adds at most 31 + 2 * scan, each stage opened 7. Under
    STRICT add heads * (3 * scan + 6) + 3 * blocks; for a failed chunk 6 per chunk of the layers
    below it; per entry dropped from a list 1 and from a queue 8, each once in a job; and the time
    for which the log is full. Measured with sound schedules and ``scan`` 32: at most 235.

    **Throughput**: one event at a time. 4 answers wait per route.

    **Numerics**: ``golden.streaming.runtime.Scheduler``.

    **Errors**: `LoadError`.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    policy : ``In(schedule_policy(config))``
        Holds still from ``start`` until not ``busy``.
    now : ``In(32)``
        Ticks; does not go back.
    i_entry : ``In(stream.Signature(schedule_entry(config)))``
    start, abort : ``In(1)``
    i_link, i_computed : ``In(stream.Signature(route_answer(config)))``
        Answers of the routes. Those that nobody waits for are dropped.
    o_link : ``Out(stream.Signature(chunk_bits))``
        Chunks to ask the link for.
    o_cancel : ``Out(stream.Signature(chunk_bits))``
        Chunks to give up on the link.
    o_compute : ``Out(stream.Signature(compute_request(config)))``
    o_record : ``Out(stream.Signature(record(config)))``
        The decision log. It waits for nothing else, but the scheduler for it.
    event : ``Out(event_record(config))``
        Each event as it is taken up: what golden must be told to decide the same.
    reacting : ``Out(1)``
        From the cycle after ``event`` until all that follows from it is done.
    loading : ``Out(1)``
        Entries and ``start`` are taken.
    busy : ``Out(1)``
        From ``start`` until the job is refused, has ended, or was aborted.
    finished : ``Out(1)``
        The last job has ended with all chunks present or lost; falls with ``start`` and ``abort``.
    error : ``Out(LoadError)``
        Why the last job was refused; NONE from ``start`` on until it is.
    present, lost : ``Out(chunk_bits + 1)``
        Chunks so far; hold until the next job begins.
    stage : ``Out(8)``
        The current stage; holds likewise.
    quiet : ``Out(1)``
        Nothing is offered on ``o_link``, ``o_cancel`` or ``o_compute``.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("RouteScheduler", config)
        bits = config.chunk_bits
        super().__init__({
            "policy": In(schedule_policy(config)),
            "now": In(TICK_BITS),
            "i_entry": In(stream.Signature(schedule_entry(config))),
            "start": In(1), "abort": In(1),
            "i_link": In(stream.Signature(route_answer(config))),
            "i_computed": In(stream.Signature(route_answer(config))),
            "o_link": Out(stream.Signature(bits)),
            "o_cancel": Out(stream.Signature(bits)),
            "o_compute": Out(stream.Signature(compute_request(config))),
            "o_record": Out(stream.Signature(record(config))),
            "event": Out(event_record(config)), "reacting": Out(1),
            "loading": Out(1), "busy": Out(1), "finished": Out(1), "error": Out(LoadError),
            "present": Out(bits + 1), "lost": Out(bits + 1), "stage": Out(STAGE_BITS),
            "quiet": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        ends = Signal()
        core = SchedulerCore(self.config)
        # Whatever a job leaves behind goes with a reset, not with code for each piece of it.
        m.submodules.core = ResetInserter(ends)(core)
        m.submodules.log = log = Queue(record(self.config), depth=LOG_DEPTH)
        # Not part of the core: what is offered at the chip's edge outlives an abort.
        m.submodules.computing = computing = Queue(compute_request(self.config), depth=1)
        m.d.comb += ends.eq(self.abort | core.refused | core.ended)

        for name in ("i_entry", "i_link", "i_computed"):
            connect(m, flipped(getattr(self, name)), getattr(core, name))
        for name in ("o_link", "o_cancel"):
            connect(m, getattr(core, name), flipped(getattr(self, name)))
        connect(m, core.o_compute, computing.i)
        connect(m, computing.o, flipped(self.o_compute))
        connect(m, log.o, flipped(self.o_record))
        m.d.comb += [
            core.policy.eq(self.policy),
            core.now.eq(self.now),
            core.start.eq(self.start & ~self.abort),
            core.room.eq(log.level <= LOG_DEPTH - LOG_MARGIN),
            log.i.valid.eq(core.log_valid & ~self.abort),
            log.i.payload.eq(core.log),
            self.event.eq(core.event),
            self.reacting.eq(core.reacting),
            self.quiet.eq(~(self.o_link.valid | self.o_cancel.valid | self.o_compute.valid)),
        ]
        self._keep_status(m, core)
        return m

    def _keep_status(self, m, core):
        begins = core.loading & core.start
        m.d.comb += self.loading.eq(core.loading)
        with m.If(begins):
            m.d.sync += [self.busy.eq(1), self.finished.eq(0), self.error.eq(LoadError.NONE)]
        with m.If(core.begins):
            m.d.sync += [self.present.eq(0), self.lost.eq(0)]
        with m.If(core.running):
            m.d.sync += self.stage.eq(core.stage)
        with m.If(core.log_valid):
            m.d.sync += [
                self.present.eq(self.present + (core.log.decision == Decision.PRESENT)),
                self.lost.eq(self.lost + (core.log.decision == Decision.LOST)),
            ]
        with m.If(core.refused):
            m.d.sync += [self.busy.eq(0), self.error.eq(core.error)]
        with m.If(core.ended):
            m.d.sync += [self.busy.eq(0), self.finished.eq(1)]
        with m.If(self.abort):
            m.d.sync += [self.busy.eq(0), self.finished.eq(0)]
