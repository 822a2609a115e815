"""Results: puts what the heads deliver into one stream, in the order of the queries."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.collector import StateCollector
from hw.attention.layouts import (
    Error,
    Kind,
    ResultKind,
    command_status,
    fetch_status,
    issued_query,
    logit_item,
    result_beat,
    selection_counts,
    state_beat,
)
from hw.config import AttentionConfig
from hw.stream import Queue

__all__ = ["Results"]


class Results(wiring.Component):
    """Delivers, per query and in issue order, what it asked for, then one STATUS beat.

    That is STATE and OUTPUT beats head by head, or for a logits-only query LOGIT beats: row by row,
    and of each row head by head, none marked ``last``. The status of a command that is no query in
    flight goes out between two queries.

    A query that met a fault delivers its STATUS only; LOGIT beats that have left stand, and their
    STATUS tells that they are incomplete.

    **Latency**: a head's first OUTPUT beat 1 cycle more than the normaliser's after its first state
    beat; a LOGIT beat 0 cycles. A query's STATUS 1 cycle after its last beat, logits-only ``group``
    cycles more, for the ENDs; the status of another command 1 cycle after ``i_status``.

    **Throughput**: one beat per cycle, see `StateCollector`; 1 cycle per query and command between
    them.

    **Numerics**: none, see `StateCollector`.

    **Errors**: those of ``i_counts``, and then those of ``i_fetch``, are the query's.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_issued : ``In(stream)`` of ``issued_query``, one per query, in order
    i_counts : ``In(stream)`` of ``selection_counts``, one per query
    i_fetch : ``In(stream)`` of ``fetch_status``, one per query
    i_state, i_logit : per head, ``In(stream)`` of ``state_beat`` and ``logit_item``
    i_status : ``In(stream)`` of ``command_status``
    o : ``Out(stream)`` of ``result_beat``
    o_release : ``Out(stream)`` of slot numbers, one per query
    done : ``Out(1)``
        High for one cycle as a STATUS beat leaves.
    error : ``Out(Error)``
        With ``done``: that of the command.
    idle : ``Out(1)``
        Nothing is outstanding.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Results config must be an AttentionConfig, not {config!r}")
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
        m.submodules.fetched = fetched = Queue(fetch_status(config), depth=config.query_slots)
        m.submodules.collector = collector = StateCollector(config)
        wiring.connect(m, wiring.flipped(self.i_counts), counts.i)
        wiring.connect(m, wiring.flipped(self.i_fetch), fetched.i)
        for outer, inner in zip(self.i_state, collector.i_state, strict=True):
            wiring.connect(m, wiring.flipped(outer), inner)
        self._note_query(m, issued, collector)

        head, saturated = Signal(range(config.group)), Signal()
        m.d.comb += [
            self.o.payload.tag.eq(issued.o.payload.tag),
            self.o.payload.head.eq(head),
            self.done.eq(self.o.valid & self.o.ready
                         & (self.o.payload.kind == ResultKind.STATUS)),
        ]
        with m.If(self.o_release.ready):
            m.d.sync += self.o_release.valid.eq(0)
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += [saturated.eq(0), head.eq(0)]
                with m.If(issued.o.valid & issued.o.payload.logits_only):
                    m.next = "LOGITS"
                with m.Elif(issued.o.valid & fetched.o.valid & counts.o.valid):
                    m.next = "BEATS"
                with m.Elif(self.i_status.valid):
                    m.next = "COMMAND"
            with m.State("LOGITS"):
                self._send_logits(m, head, saturated)
            with m.State("BEATS"):
                self._send_beats(m, collector, head, saturated, self._fault(counts, fetched))
            with m.State("STATUS"):
                self._close_query(m, issued, counts, fetched, saturated)
            with m.State("COMMAND"):
                self._close_command(m)
        m.d.comb += self.idle.eq(
            fsm.ongoing("IDLE") & ~issued.o.valid & ~self.i_status.valid & ~self.o_release.valid)
        return m

    def _note_query(self, m, issued, collector):
        """A query enters the queue and, if it has states, the collector at once."""
        query = self.i_issued.payload
        has_states = ~query.logits_only
        m.d.comb += [
            issued.i.payload.eq(query),
            issued.i.valid.eq(self.i_issued.valid & (~has_states | collector.i.ready)),
            collector.i.payload.want_output.eq(query.want_output),
            collector.i.payload.want_state.eq(query.want_state),
            collector.i.valid.eq(self.i_issued.valid & has_states & issued.i.ready),
            self.i_issued.ready.eq(issued.i.ready & (~has_states | collector.i.ready)),
        ]

    def _fault(self, counts, fetched):
        selection, rows = counts.o.payload.error, fetched.o.payload.error
        return Mux(selection != Error.NONE, selection, rows)

    def _send_logits(self, m, head, saturated):
        """A beat per row and head; the heads' END items close the query."""
        item, words = Signal(logit_item(self.config)), self.o.payload.words
        is_there, moves = Signal(), Signal()
        for number, port in enumerate(self.i_logit):
            with m.If(head == number):
                m.d.comb += [item.eq(port.payload), is_there.eq(port.valid), port.ready.eq(moves)]
        is_end, is_last = item.kind == Kind.END, head == self.config.group - 1
        m.d.comb += [
            self.o.valid.eq(is_there & ~is_end),
            self.o.payload.kind.eq(ResultKind.LOGIT),
            words[0].eq(Cat(item.position, Const(0, 30 - len(item.position)), item.kind)),
            words[1].eq(item.logit),
            words[2].eq(item.weight),
            moves.eq(is_there & (is_end | self.o.ready)),
        ]
        with m.If(moves):
            m.d.sync += [
                head.eq(Mux(is_last, 0, head + 1)),
                saturated.eq(saturated | (~is_end & item.saturated)),
            ]
            with m.If(is_end & is_last):
                m.next = "STATUS"

    def _send_beats(self, m, collector, head, saturated, fault):
        """STATE and OUTPUT beats of all heads; dropped when the query failed."""
        beat = collector.o.payload
        is_dropped, is_last = (fault != Error.NONE) | beat.empty, head == self.config.group - 1
        m.d.comb += [
            self.o.valid.eq(collector.o.valid & ~is_dropped),
            self.o.payload.kind.eq(beat.kind),
            self.o.payload.words.eq(beat.words),
            self.o.payload.last.eq(beat.last),
            collector.o.ready.eq(is_dropped | self.o.ready),
        ]
        with m.If(collector.o.valid & collector.o.ready):
            m.d.sync += saturated.eq(saturated | beat.saturated)
            with m.If(beat.last_of_head):
                m.d.sync += head.eq(Mux(is_last, 0, head + 1))
                with m.If(is_last):
                    m.next = "STATUS"

    def _close_query(self, m, issued, counts, fetched, saturated):
        """The status of a query, and its slot's release."""
        selected, words = counts.o.payload, self.o.payload.words
        beats = Signal(24)
        m.d.comb += [
            beats.eq(fetched.o.payload.beats + selected.beats),
            self.error.eq(self._fault(counts, fetched)),
            self.o.valid.eq(counts.o.valid & fetched.o.valid & ~self.o_release.valid),
            self.o.payload.kind.eq(ResultKind.STATUS),
            self.o.payload.last.eq(1),
            words[0].eq(Cat(self.error, saturated, Const(0, 3), beats)),
            words[1].eq(selected.full),
            words[2].eq(selected.coarse),
            words[3].eq(selected.summaries),
            *(queue.o.ready.eq(self.done) for queue in (issued, counts, fetched)),
        ]
        with m.If(self.done):
            m.d.sync += [
                self.o_release.valid.eq(1), self.o_release.payload.eq(issued.o.payload.slot)]
            m.next = "IDLE"

    def _close_command(self, m):
        """The status of a command that is not a query in flight."""
        status, words = self.i_status.payload, self.o.payload.words
        m.d.comb += [
            self.error.eq(status.error),
            self.o.valid.eq(1),
            self.o.payload.kind.eq(ResultKind.STATUS),
            self.o.payload.tag.eq(status.tag),
            self.o.payload.last.eq(1),
            words[0].eq(status.error),
            words[1].eq(status.length),
            self.i_status.ready.eq(self.o.ready),
        ]
        with m.If(self.done):
            m.next = "IDLE"
