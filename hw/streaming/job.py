"""Runs a job: loads its schedule, starts the route scheduler, keeps the time, tells the end."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import NEVER
from hw.streaming.reports import JobEnd, job_report
from hw.streaming.scheduler.layouts import LoadError

__all__ = ["JobControl"]


class _State(enum.Enum, shape=3):
    IDLE = 0
    READY = 1     # wait until the scheduler takes entries
    LOAD = 2
    FAILED = 3
    START = 4
    RUN = 5
    DRAIN = 6     # nothing may be under way at the end
    REPORT = 7


class JobControl(wiring.Component):
    """The course of a job.

    A job that ends, however, does so when nothing of it is under way any more: its requests are
    given up, and the last write has been answered.

    **Latency**: from ``start`` to ``load`` 2 cycles, if the scheduler is ready; from the loader's
    end to the scheduler's start, or its abort where loading failed, 1 cycle.

    **Throughput**: one job at a time.

    **Numerics**: none. ``now`` counts from the scheduler's start; it stops below 2**32 - 1.

    **Errors**: the job's report says how it ended.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    start, abort : ``In(1)``, for one cycle
    tick_log2 : ``In(4)``
    load : ``Out(1)``; loaded, load_failed : ``In(1)``
        To and from the `Loader`.
    run, give_up : ``Out(1)``, for one cycle
        Start and abort the scheduler.
    loading, running, finished : ``In(1)``; lost : ``In(16)``; error : ``In(LoadError)``
        From the scheduler.
    stop : ``Out(1)``
        Give up all requests, and drop entries that still come.
    draining : ``In(1)``
        Something of the job is under way.
    busy : ``Out(1)``
    now : ``Out(32)``
        Ticks.
    o_report : ``Out(stream.Signature(job_report()))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("JobControl", config)
        super().__init__({
            "start": In(1),
            "abort": In(1),
            "tick_log2": In(4),
            "load": Out(1),
            "loaded": In(1),
            "load_failed": In(1),
            "run": Out(1),
            "give_up": Out(1),
            "loading": In(1),
            "running": In(1),
            "finished": In(1),
            "lost": In(16),
            "error": In(LoadError),
            "stop": Out(1),
            "draining": In(1),
            "busy": Out(1),
            "now": Out(32),
            "o_report": Out(stream.Signature(job_report())),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        state, end = Signal(_State), Signal(JobEnd)
        is_reading = Signal()  # the loader is under way
        with m.If(self.load):
            m.d.sync += is_reading.eq(1)
        with m.Elif(self.loaded):
            m.d.sync += is_reading.eq(0)
        m.d.comb += [
            self.busy.eq(state != _State.IDLE),
            self.stop.eq(state == _State.DRAIN),
            self.o_report.valid.eq(state == _State.REPORT),
            self.o_report.payload.end.eq(end),
            self.o_report.payload.detail.eq(
                Mux(end == JobEnd.SCHEDULE, self.error.as_value(), self.lost)),
        ]
        self._walk(m, state, end, is_reading)
        self._keep_time(m)
        return m

    def _walk(self, m, state, end, is_reading):
        with m.Switch(state):
            with m.Case(_State.IDLE):
                with m.If(self.start):
                    m.d.sync += [state.eq(_State.READY), end.eq(JobEnd.FINISHED)]
            with m.Case(_State.READY):
                with m.If(self.loading):
                    m.d.comb += self.load.eq(1)
                    m.d.sync += state.eq(_State.LOAD)
            with m.Case(_State.LOAD):
                with m.If(self.loaded):
                    m.d.sync += state.eq(Mux(self.load_failed, _State.FAILED, _State.START))
            with m.Case(_State.FAILED):
                # A state of its own, since ``give_up`` resets all of the scheduler.
                m.d.comb += self.give_up.eq(1)
                m.d.sync += [state.eq(_State.DRAIN), end.eq(JobEnd.LOAD)]
            with m.Case(_State.START):
                m.d.comb += self.run.eq(1)
                m.d.sync += state.eq(_State.RUN)
            with m.Case(_State.RUN):
                with m.If(~self.running):
                    m.d.sync += state.eq(_State.DRAIN)
                    with m.If(~self.finished):
                        m.d.sync += end.eq(JobEnd.SCHEDULE)
            with m.Case(_State.DRAIN):
                with m.If(~self.draining & ~is_reading):
                    m.d.sync += state.eq(_State.REPORT)
            with m.Case(_State.REPORT):
                with m.If(self.o_report.ready):
                    m.d.sync += state.eq(_State.IDLE)
        is_under_way = ((state == _State.READY) | (state == _State.LOAD) | (state == _State.START)
                        | (state == _State.RUN))
        with m.If(self.abort & is_under_way):
            m.d.comb += [self.give_up.eq(1), self.run.eq(0), self.load.eq(0)]
            m.d.sync += [state.eq(_State.DRAIN), end.eq(JobEnd.ABORTED)]

    def _keep_time(self, m):
        cycles = Signal(15)
        is_tick = Signal()
        m.d.comb += is_tick.eq((cycles & ((1 << self.tick_log2) - 1))
                               == ((1 << self.tick_log2) - 1)[:15])
        with m.If(self.run):
            m.d.sync += [cycles.eq(0), self.now.eq(0)]
        with m.Else():
            m.d.sync += cycles.eq(cycles + 1)
            with m.If(is_tick & (self.now != NEVER - 1)):
                m.d.sync += self.now.eq(self.now + 1)
