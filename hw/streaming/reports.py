"""What the streaming engine tells the host: one stream of reports, and a counter for each kind."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import Arbiter, SkidBuffer
from hw.streaming.checks import check_config
from hw.streaming.landing import frame_report
from hw.streaming.layouts import CopyError, Decision, Outcome, copy_done, record

__all__ = ["EVENT_BITS", "MASK_BITS", "Cause", "JobEnd", "ReportKind", "Reports", "job_report",
           "report"]

CODE_BITS = 5
OUTCOME_CODE = 16   # added to the outcome of a frame that was accepted and not written


class ReportKind(enum.Enum, shape=2):
    DECISION = 0   # code: Decision; id: frame id, or stage
    FRAME = 1      # code: Reason, or 16 + Outcome; id: frame id
    COPY = 2       # code: CopyError; id: tag
    JOB = 3        # code: JobEnd; id: its detail


class JobEnd(enum.Enum, shape=CODE_BITS):
    FINISHED = 0   # detail: chunks lost
    LOAD = 1       # the schedule could not be read, or does not fit its fields
    SCHEDULE = 2   # the schedule is not one; detail: LoadError
    ABORTED = 3    # detail: chunks lost


class Cause(enum.IntFlag, shape=6):
    """Bits of the interrupt registers."""

    JOB = 1         # a job ended
    LOST = 2        # neither route could bring a chunk
    FRAME = 4       # a frame was refused, or not written
    COPY = 8        # a copy command ended
    COPY_FAILED = 16
    CHUNK = 32      # a chunk is present


EVENT_BITS = 2 + CODE_BITS
MASK_BITS = len(Decision) + len(ReportKind) - 1


def report() -> data.StructLayout:
    return data.StructLayout({"kind": ReportKind, "code": CODE_BITS, "time": 32, "id": 32})


def job_report() -> data.StructLayout:
    return data.StructLayout({"end": JobEnd, "detail": 16})


class Reports(wiring.Component):
    """Merges reports, counts each, raises interrupts, and passes those on that are wanted.

    A decision has its own time, any other report that of the cycle in which it is taken.

    **Latency**: 1 cycle, to ``event_count`` 4; from ``event_index`` to ``event_count`` 1.

    **Throughput**: a report per 2 cycles.

    **Numerics**: none; counters are exact modulo 2**32.

    **Errors**: none. A report that is wanted is never lost: the engine waits.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_record, i_frame, i_copy, i_job : ``In``, streams of ``record(config)``, ``frame_report()``,
    ``copy_done(config)``, ``job_report()``
    first_id, now : ``In(32)``
        Frame id of chunk 0; the time, in ticks.
    mask : ``In``
        Reports wanted: a bit per Decision, then FRAME, COPY, JOB.
    o : ``Out(stream.Signature(report()))``
    causes : ``Out(Cause)``
        Of the report in this cycle.
    event_index : ``In``; event_count : ``Out(32)``
        How often the event of kind ``index >> 5`` and code ``index & 31`` was reported.
    clear : ``In(1)``
        All counts to zero; a report of the same cycle is not counted.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Reports", config)
        super().__init__({
            "i_record": In(stream.Signature(record(config))),
            "i_frame": In(stream.Signature(frame_report())),
            "i_copy": In(stream.Signature(copy_done(config))),
            "i_job": In(stream.Signature(job_report())),
            "first_id": In(32),
            "now": In(32),
            "mask": In(MASK_BITS),
            "o": Out(stream.Signature(report())),
            "causes": Out(Cause),
            "event_index": In(EVENT_BITS),
            "event_count": Out(32),
            "clear": In(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = Arbiter(report(), count=len(ReportKind))
        m.submodules.register = register = SkidBuffer(report())
        wiring.connect(m, register.o, wiring.flipped(self.o))
        self._translate(m, arbiter.i)
        chosen = arbiter.o.payload
        is_wanted, taken, rests = Signal(), Signal(), Signal()
        decisions = len(Decision)
        # Wanted are: decisions by their code, the rest by their kind.
        bit = Mux(chosen.kind == ReportKind.DECISION, chosen.code,
                  decisions - 1 + chosen.kind.as_value())
        m.d.comb += [
            is_wanted.eq(self.mask.bit_select(bit, 1)),
            register.i.payload.eq(chosen),
            register.i.valid.eq(arbiter.o.valid & is_wanted & ~rests),
            arbiter.o.ready.eq((register.i.ready | ~is_wanted) & ~rests),
            taken.eq(arbiter.o.valid & arbiter.o.ready),
        ]
        # A count is read in one cycle and written in the next; never two of the same at once.
        m.d.sync += rests.eq(taken)
        self._interrupt(m, chosen, taken)
        self._count(m, Cat(chosen.code, chosen.kind), taken)
        return m

    def _translate(self, m, ports):
        decision, frame, copy, job = ports
        is_stage = self.i_record.payload.decision == Decision.STAGE
        m.d.comb += [
            decision.payload.code.eq(self.i_record.payload.decision),
            decision.payload.time.eq(self.i_record.payload.time),
            decision.payload.id.eq(
                self.i_record.payload.chunk + Mux(is_stage, 0, self.first_id)),
            frame.payload.code.eq(Mux(
                self.i_frame.payload.outcome == Outcome.REFUSED, self.i_frame.payload.reason,
                OUTCOME_CODE + self.i_frame.payload.outcome.as_value())),
            frame.payload.id.eq(self.i_frame.payload.chunk_id),
            copy.payload.code.eq(self.i_copy.payload.error),
            copy.payload.id.eq(self.i_copy.payload.tag),
            job.payload.code.eq(self.i_job.payload.end),
            job.payload.id.eq(self.i_job.payload.detail),
        ]
        sources = (self.i_record, self.i_frame, self.i_copy, self.i_job)
        for kind, source, port in zip(ReportKind, sources, ports, strict=True):
            m.d.comb += [
                port.payload.kind.eq(kind),
                port.valid.eq(source.valid),
                source.ready.eq(port.ready),
            ]
            if kind != ReportKind.DECISION:
                m.d.comb += port.payload.time.eq(self.now)

    def _interrupt(self, m, chosen, taken):
        with m.If(taken), m.Switch(chosen.kind):
            with m.Case(ReportKind.DECISION):
                with m.If(chosen.code == Decision.LOST.value):
                    m.d.comb += self.causes.eq(Cause.LOST)
                with m.If(chosen.code == Decision.PRESENT.value):
                    m.d.comb += self.causes.eq(Cause.CHUNK)
            with m.Case(ReportKind.FRAME):
                m.d.comb += self.causes.eq(Cause.FRAME)
            with m.Case(ReportKind.COPY):
                m.d.comb += self.causes.eq(Mux(
                    chosen.code == CopyError.NONE.value, Cause.COPY,
                    Cause.COPY | Cause.COPY_FAILED))
            with m.Case(ReportKind.JOB):
                m.d.comb += self.causes.eq(Cause.JOB)

    def _count(self, m, index, taken):
        """One memory for all counts; a count is zero until its bit in ``used`` is set."""
        m.submodules.counts = counts = Memory(shape=32, depth=1 << EVENT_BITS, init=[])
        used, is_read, is_written = Signal(1 << EVENT_BITS), Signal(), Signal()
        old, shown = counts.read_port(domain="comb"), counts.read_port(domain="comb")
        write, count = counts.write_port(), Signal(32)
        m.d.comb += [
            write.en.eq(is_written),
            write.data.eq(count + 1),
            shown.addr.eq(self.event_index),
        ]
        m.d.sync += [
            is_read.eq(taken & ~self.clear),
            old.addr.eq(index),
            is_written.eq(is_read & ~self.clear),
            write.addr.eq(old.addr),
            count.eq(Mux(used.bit_select(old.addr, 1), old.data, 0)),
            self.event_count.eq(Mux(used.bit_select(self.event_index, 1), shown.data, 0)),
        ]
        with m.If(self.clear):
            m.d.sync += used.eq(0)
        with m.Elif(is_written):
            m.d.sync += used.bit_select(write.addr, 1).eq(1)
