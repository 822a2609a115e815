"""Results: puts what the heads deliver into one stream, in the order of the queries."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import (
    Error,
    ResultKind,
    command_status,
    fetch_status,
    issued_query,
    logit_item,
    result_beat,
    selection_counts,
    state_beat,
)
from hw.attention.collector import StateCollector
from hw.attention.layouts import Kind
from hw.config import AttentionConfig
from hw.stream import Queue

__all__ = ["Results"]


class Results(wiring.Component):
    """Delivers, per query and in issue order: STATE and OUTPUT beats head by head, or LOGIT beats,
    then one STATUS beat. Statuses of other commands go in between two queries.

    A query that met a fault delivers its STATUS only; LOGIT beats already sent stand, the STATUS
    tells that they are incomplete.

    **Latency**: a head's first OUTPUT beat leaves the normaliser's latency after its first state
    beat; the STATUS beat follows the last OUTPUT beat by 1 cycle.

    **Throughput**: one beat per cycle.

    Members
    -------
    i_issued : stream of ``issued_query``, one per query, in order
    i_counts : stream of ``selection_counts``
    i_fetch : stream of ``fetch_status``
    i_state, i_logit : per head, streams of ``state_beat`` and ``logit_item``
    i_status : stream of ``command_status``
    o : stream of ``result_beat``
    o_release : stream of slot numbers, always taken
    done, error : high for one cycle with each STATUS beat, and its code
    idle : high when nothing is outstanding
    """

    def __init__(self, config: AttentionConfig):
        self._config = config
        super().__init__({
            "i_issued": In(stream.Signature(issued_query(config))),
            "i_counts": In(stream.Signature(selection_counts(config))),
            "i_fetch": In(stream.Signature(fetch_status(config))),
            "i_state": In(stream.Signature(state_beat(config))).array(config.group),
            "i_logit": In(stream.Signature(logit_item(config))).array(config.group),
            "i_status": In(stream.Signature(command_status(config))),
            "o": Out(stream.Signature(result_beat(config))),
            "o_release": Out(stream.Signature(config.slot_bits)),
            "done": Out(1),
            "error": Out(Error),
            "idle": Out(1),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.issued = issued = Queue(issued_query(config), depth=config.query_slots)
        m.submodules.counts = counts = Queue(selection_counts(config), depth=config.query_slots)
        m.submodules.fetch = fetch = Queue(fetch_status(config), depth=config.query_slots)
        m.submodules.collector = collector = StateCollector(config)
        wiring.connect(m, wiring.flipped(self.i_counts), counts.i)
        wiring.connect(m, wiring.flipped(self.i_fetch), fetch.i)
        for head in range(config.group):
            wiring.connect(m, wiring.flipped(self.i_state[head]), collector.i_state[head])

        # The collector learns of each query that has states, beside the queue.
        has_states = ~self.i_issued.payload.logits_only
        m.d.comb += [
            issued.i.payload.eq(self.i_issued.payload),
            issued.i.valid.eq(self.i_issued.valid & (~has_states | collector.i.ready)),
            collector.i.valid.eq(self.i_issued.valid & has_states & issued.i.ready),
            collector.i.payload.want_output.eq(self.i_issued.payload.want_output),
            collector.i.payload.want_state.eq(self.i_issued.payload.want_state),
            self.i_issued.ready.eq(issued.i.ready & (~has_states | collector.i.ready)),
        ]

        query = issued.o.payload
        head = Signal(range(config.group))
        saturated = Signal()
        failed = Signal()
        m.d.comb += [
            failed.eq((fetch.o.payload.error != Error.NONE) | (counts.o.payload.error != Error.NONE)),
            self.o.payload.tag.eq(query.tag),
            self.o.payload.head.eq(head),
        ]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += [saturated.eq(0), head.eq(0)]
                with m.If(issued.o.valid & query.logits_only):
                    m.next = "LOGITS"
                with m.Elif(issued.o.valid & fetch.o.valid & counts.o.valid):
                    m.next = "BEATS"
                with m.Elif(self.i_status.valid):
                    m.next = "COMMAND"
            with m.State("LOGITS"):
                self._logits(m, head, saturated)
            with m.State("BEATS"):
                self._beats(m, collector, head, saturated, failed, query)
            with m.State("STATUS"):
                self._status(m, issued, counts, fetch, saturated)
            with m.State("COMMAND"):
                status = self.i_status.payload
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.tag.eq(status.tag),
                    self.o.payload.last.eq(1),
                    self.o.payload.words[0].eq(status.error),
                    self.o.payload.words[1].eq(status.length),
                    self.i_status.ready.eq(self.o.ready),
                    self.done.eq(self.o.ready),
                    self.error.eq(status.error),
                ]
                with m.If(self.o.ready):
                    m.next = "IDLE"
        m.d.comb += self.idle.eq(fsm.ongoing("IDLE") & ~issued.o.valid & ~self.i_status.valid)
        return m

    def _logits(self, m, head, saturated):
        """One LOGIT beat per head and item; the END items close the query."""
        config = self.config
        item = Signal(logit_item(config))
        valid = Signal()
        is_end = item.kind == Kind.END
        advance = Signal()
        for number, port in enumerate(self.i_logit):
            with m.If(head == number):
                m.d.comb += [item.eq(port.payload), valid.eq(port.valid), port.ready.eq(advance)]
        words = self.o.payload.words
        m.d.comb += [
            self.o.payload.kind.eq(ResultKind.LOGIT),
            self.o.valid.eq(valid & ~is_end),
            words[0].eq(Cat(item.position, Const(0, 30 - len(item.position)), item.kind.as_value())),
            words[1].eq(item.logit),
            words[2].eq(item.weight),
            advance.eq(is_end | self.o.ready),
        ]
        with m.If(valid & advance):
            m.d.sync += [
                head.eq(Mux(head == config.group - 1, 0, head + 1)),
                saturated.eq(saturated | (~is_end & item.saturated)),
            ]
            with m.If(is_end & (head == config.group - 1)):
                m.next = "STATUS"

    def _beats(self, m, collector, head, saturated, failed, query):
        """STATE and OUTPUT beats of all heads; dropped when the query failed."""
        beat = collector.o.payload
        m.d.comb += [
            self.o.valid.eq(collector.o.valid & ~failed & ~beat.empty),
            self.o.payload.kind.eq(beat.kind),
            self.o.payload.words.eq(beat.words),
            self.o.payload.last.eq(beat.last),
            collector.o.ready.eq(failed | beat.empty | self.o.ready),
        ]
        with m.If(collector.o.valid & collector.o.ready):
            m.d.sync += saturated.eq(saturated | beat.saturated)
            with m.If(beat.last_of_head):
                m.d.sync += head.eq(head + 1)
                with m.If(head == self.config.group - 1):
                    m.next = "STATUS"

    def _status(self, m, issued, counts, fetch, saturated):
        """Close the query and free its slot."""
        words = self.o.payload.words
        error = Signal(Error)
        closing = Signal()
        beats = Signal(32)
        m.d.comb += [
            beats.eq(fetch.o.payload.beats + counts.o.payload.beats),
            error.eq(Mux(counts.o.payload.error != Error.NONE,
                         counts.o.payload.error, fetch.o.payload.error)),
            self.o.valid.eq(counts.o.valid & fetch.o.valid),
            closing.eq(self.o.valid & self.o.ready),
            self.o.payload.kind.eq(ResultKind.STATUS),
            self.o.payload.head.eq(0),
            self.o.payload.last.eq(1),
            words[0].eq(Cat(error, saturated, Const(0, 3), beats[:24])),
            words[1].eq(counts.o.payload.full),
            words[2].eq(counts.o.payload.coarse),
            words[3].eq(counts.o.payload.summaries),
            issued.o.ready.eq(closing),
            counts.o.ready.eq(closing),
            fetch.o.ready.eq(closing),
            self.o_release.valid.eq(closing),
            self.o_release.payload.eq(issued.o.payload.slot),
            self.done.eq(closing),
            self.error.eq(error),
        ]
        with m.If(closing):
            m.next = "IDLE"


