"""Tells when all of a chunk's bursts were answered."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.layouts import Outcome, write_outcome

__all__ = ["WriteTracker"]


class WriteTracker(wiring.Component):
    """Counts bursts and their answers, which come in the order of the bursts.

    There is room for the answer to each burst, so answers are always taken: a chunk whose outcome
    is not taken holds up those behind it, but not the bus.

    **Latency**: 2 cycles from a chunk's last answer to ``o_done``, 1 from ``i_mark`` of a chunk
    without bursts.

    **Throughput**: a burst and an answer per cycle, but none counted in that of an outcome.

    **Numerics**: ``golden.streaming.writer.outcome_of``.

    **Errors**: an outcome DONE becomes WRITE if an answer of the chunk was an error.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    issues : ``In(1)``
        A burst is asked for; only with ``has_credit``.
    has_credit : ``Out(1)``
        Fewer than ``config.bursts`` are open.
    answered, is_error : ``In(1)``
        The oldest burst that had none has an answer.
    i_mark : ``In(stream.Signature(write_outcome(config)))``
        The chunk of the bursts since the mark before is through.
    o_done : ``Out(stream.Signature(write_outcome(config)))``
        One for each mark, after the last answer of its chunk.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("WriteTracker", config)
        super().__init__({
            "issues": In(1),
            "has_credit": Out(1),
            "answered": In(1),
            "is_error": In(1),
            "i_mark": In(stream.Signature(write_outcome(config))),
            "o_done": Out(stream.Signature(write_outcome(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        # Numbers of bursts, modulo more than can be open.
        count_bits = exact_log2(config.bursts) + 1
        issued, retired = Signal(count_bits), Signal(count_bits)
        m.submodules.answers = answers = Queue(1, depth=config.bursts)
        m.submodules.marks = marks = Queue(data.StructLayout({
            "told": write_outcome(config), "issued": count_bits}), depth=max(2, config.outstanding))

        retires, is_through, has_failed = Signal(), Signal(), Signal()
        oldest, done = marks.o.payload, self.o_done
        m.d.comb += [
            self.has_credit.eq((issued ^ retired) != config.bursts),
            answers.i.valid.eq(self.answered),
            answers.i.payload.eq(self.is_error),
            marks.i.valid.eq(self.i_mark.valid),
            marks.i.payload.told.eq(self.i_mark.payload),
            marks.i.payload.issued.eq(issued),
            self.i_mark.ready.eq(marks.i.ready),
            is_through.eq(marks.o.valid & (retired == oldest.issued)),
            done.valid.eq(is_through),
            done.payload.beats.eq(oldest.told.beats),
            done.payload.outcome.eq(Mux(
                has_failed & (oldest.told.outcome == Outcome.DONE),
                Outcome.WRITE.value, oldest.told.outcome.as_value())),
            marks.o.ready.eq(is_through & done.ready),
            # The next answer is of a later chunk, and the next chunk may have no burst.
            answers.o.ready.eq(~is_through),
            retires.eq(answers.o.valid & answers.o.ready),
        ]
        m.d.sync += [
            issued.eq(issued + self.issues),
            retired.eq(retired + retires),
            has_failed.eq((has_failed & ~marks.o.ready) | (retires & answers.o.payload)),
        ]
        return m
