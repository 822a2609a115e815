"""Front end: takes commands and their data, checks them, and starts the work."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.contexts import context_view
from hw.attention.gather import Gather
from hw.attention.layouts import (
    Error,
    Opcode,
    Select,
    append_row,
    command,
    command_status,
    data_beat,
    encode_request,
    issued_query,
    query_vector,
    retrieval_job,
)
from hw.config import EXPONENT_BITS, EXPONENT_NAN, AttentionConfig

__all__ = ["Front"]


class Front(wiring.Component):
    """Takes one command at a time; queries go on down the pipeline while the next is taken.

    A query is loaded, encoded (unless its codes come with it) and issued; the front end is then
    free. An append holds it until the last write response, so that a later query sees the tokens.

    **Latency**: 4 cycles from a query command to its first data beat being taken; 4 cycles from the
    last code (or data beat) to the job.

    **Throughput**: a query holds the front end for its data beats, its encoding and about 10 cycles.

    **Errors**: a refused command's data are drained and its status carries the code: OPCODE, CONTEXT,
    EMPTY, VISIBLE, BUDGET, CAPACITY, DATA, EXPONENT (see ``Error``).

    Members
    -------
    i_command, i_data : streams of ``command`` and ``data_beat``
    o_lookup, i_view : the context table's lookup
    o_length : stream of {index, length}, always ready: an append's new length
    o_query : per head, stream of ``query_vector``
    o_encode, i_encoded : the encoder's query side
    o_job : stream of ``retrieval_job``
    o_issued : stream of ``issued_query``, beside each job
    i_release : stream of slot numbers whose query is done
    o_append, i_appended : stream of ``append_row``, and {error} per APPEND command
    o_weight : stream of {index, data}: encoder weights
    o_status : stream of ``command_status``
    idle : high when no command is held
    """

    def __init__(self, config: AttentionConfig):
        self._config = config
        row_bits = config.head_dim * 8
        super().__init__({
            "i_command": In(stream.Signature(command(config))),
            "i_data": In(stream.Signature(data_beat(config))),
            "o_lookup": Out(stream.Signature(16)),
            "i_view": In(stream.Signature(context_view(config))),
            "o_length": Out(stream.Signature(
                data.StructLayout({"index": 16, "length": config.token_bits}))),
            "o_query": Out(stream.Signature(query_vector(config))).array(config.group),
            "o_encode": Out(stream.Signature(encode_request(config))),
            "i_encoded": In(stream.Signature(config.code_bits)),
            "o_job": Out(stream.Signature(retrieval_job(config))),
            "o_issued": Out(stream.Signature(issued_query(config))),
            "i_release": In(stream.Signature(config.slot_bits)),
            "o_append": Out(stream.Signature(append_row(config))),
            "i_appended": In(stream.Signature(data.StructLayout({"error": Error}))),
            "o_weight": Out(stream.Signature(
                data.StructLayout({"index": 16, "data": row_bits}))),
            "o_status": Out(stream.Signature(command_status(config))),
            "idle": Out(1),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.gather = gather = Gather(config)
        wiring.connect(m, wiring.flipped(self.i_data), gather.i)

        held = Signal(command(config))
        view = Signal(context_view(config))
        error = Signal(Error)
        visible = Signal(config.token_bits)
        state = _State(held=held, view=view, error=error, visible=visible, gather=gather,
                       record=Signal(32), drained=Signal())

        slot = self._allocate(m)
        query = self._collect_codes(m, state)
        self._describe_job(m, state, slot, query.codes)
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += self.i_command.ready.eq(1)
                m.d.sync += [
                    held.eq(self.i_command.payload),
                    error.eq(Error.NONE),
                    state.record.eq(0),
                    state.drained.eq(0),
                ]
                with m.If(self.i_command.valid):
                    m.next = "LOOKUP"
            with m.State("LOOKUP"):
                m.d.comb += [self.o_lookup.valid.eq(1), self.o_lookup.payload.eq(held.context)]
                with m.If(self.o_lookup.ready):
                    m.next = "VIEW"
            with m.State("VIEW"):
                m.d.comb += self.i_view.ready.eq(1)
                m.d.sync += [
                    view.eq(self.i_view.payload),
                    visible.eq(Mux(held.visible == 0, self.i_view.payload.entry.length,
                                   held.visible)),
                ]
                with m.If(self.i_view.valid):
                    m.next = "CHECK"
            with m.State("CHECK"):
                self._check(m, state)
            with m.State("REFUSE"):
                self._drain(m, state)
            self._query_states(m, state, slot, query)
            self._append_states(m, state)
            self._weight_states(m, state)
            with m.State("STATUS"):
                m.d.comb += [
                    self.o_status.valid.eq(1),
                    self.o_status.payload.tag.eq(held.tag),
                    self.o_status.payload.error.eq(error),
                    self.o_status.payload.length.eq(view.entry.length),
                ]
                with m.If(self.o_status.ready):
                    m.next = "IDLE"
        m.d.comb += self.idle.eq(fsm.ongoing("IDLE") & ~self.i_command.valid)
        return m

    def _allocate(self, m):
        """Slots in use; the lowest free one is the next query's, kept from SLOT to ISSUE."""
        slot = _Slot(*(Signal(shape, name=f"slot_{name}") for name, shape in (
            ("number", self.config.slot_bits), ("next", self.config.slot_bits),
            ("free", 1), ("claim", 1))))
        used = Signal(self.config.query_slots)
        claim = Signal(self.config.query_slots)
        release = Signal(self.config.query_slots)
        for number in reversed(range(self.config.query_slots)):
            with m.If(~used[number]):
                m.d.comb += [slot.next.eq(number), slot.free.eq(1)]
        m.d.comb += [self.i_release.ready.eq(1), claim.bit_select(slot.number, 1).eq(slot.claim)]
        with m.If(self.i_release.valid):
            m.d.comb += release.bit_select(self.i_release.payload, 1).eq(1)
        m.d.sync += used.eq((used | claim) & ~release)
        return slot

    def _check(self, m, state):
        """Refuse what can be refused before any data is taken."""
        held, view, error, visible = state.held, state.view, state.error, state.visible
        end = Signal(34)
        m.d.comb += end.eq(view.entry.length + held.count)

        def refuse(code):
            m.d.sync += error.eq(code)
            m.next = "REFUSE"

        with m.Switch(held.opcode):
            with m.Case(Opcode.QUERY):
                with m.If(~view.valid):
                    refuse(Error.CONTEXT)
                with m.Elif(view.entry.length == 0):
                    refuse(Error.EMPTY)
                with m.Elif((held.visible > view.entry.length)):
                    refuse(Error.VISIBLE)
                with m.Elif((held.select == Select.BUDGET) & (held.full + held.coarse > visible)):
                    refuse(Error.BUDGET)
                with m.Else():
                    m.next = "SLOT"
            with m.Case(Opcode.APPEND):
                with m.If(~view.valid):
                    refuse(Error.CONTEXT)
                with m.Elif(end > view.entry.capacity):
                    refuse(Error.CAPACITY)
                with m.Elif(held.count == 0):
                    refuse(Error.DATA)
                with m.Else():
                    m.next = "APPEND"
            with m.Case(Opcode.WEIGHTS):
                rows = 2 * self.config.encoder_sets * self.config.code_bits
                with m.If(held.index + held.count > rows):
                    refuse(Error.CAPACITY)
                with m.Elif(held.count == 0):
                    refuse(Error.DATA)
                with m.Else():
                    m.next = "WEIGHTS"
            with m.Default():
                refuse(Error.OPCODE)

    def _drain(self, m, state):
        """Take data beats until the last one."""
        m.d.comb += [state.gather.beats.eq(1), state.gather.o.ready.eq(1)]
        with m.If(state.gather.o.valid & state.gather.o.payload.last):
            m.next = "STATUS"

    def _next_record(self, m, state, count):
        """Judge the record at hand against ``last``: sets the error and returns (final, bad)."""
        record = state.gather.o.payload
        final = Signal(name=f"final_{len(state.finals)}")
        bad = Signal(name=f"bad_{len(state.finals)}")
        state.finals.append(final)
        m.d.comb += [final.eq(state.record + 1 == count), bad.eq(record.short | (record.last != final))]
        return final, bad

    def _collect_codes(self, m, state):
        """Codes of the query at hand: they come back in the order of the heads."""
        config, held = self.config, state.held
        query = _Query(
            codes=Signal(data.ArrayLayout(config.code_bits, config.group), name="codes"),
            pending=Signal(range(config.group + 1), name="codes_pending"),
            records=Signal(range(config.group + 2), name="query_records"),
            heads_done=Signal(name="heads_done"), encode=Signal(name="encode"))
        sent = self.o_encode.valid & self.o_encode.ready
        came = self.i_encoded.valid & self.i_encoded.ready
        m.d.comb += [
            query.records.eq(config.group + held.has_code),
            query.heads_done.eq(state.record == config.group),
            query.encode.eq(~held.has_code & (held.select != Select.DENSE)),
            self.i_encoded.ready.eq(1),
        ]
        m.d.sync += query.pending.eq(query.pending + sent - came)
        with m.If(came):
            m.d.sync += query.codes.as_value().eq(
                Cat(query.codes.as_value(), self.i_encoded.payload)[config.code_bits:])
        return query

    def _query_states(self, m, state, slot, query):
        config, held, gather = self.config, state.held, state.gather
        with m.State("SLOT"):
            m.d.sync += slot.number.eq(slot.next)
            with m.If(slot.free):
                m.next = "QUERY"
        with m.State("QUERY"):
            bits = config.query_data_bytes * 8
            record = gather.o.payload
            final, bad = self._next_record(m, state, query.records)
            m.d.comb += gather.beats.eq(Mux(
                query.heads_done, -(-config.group * config.code_bits // 8 // config.memory_bytes),
                config.query_data_bytes // config.memory_bytes))
            vector = self.o_encode.payload.vector
            m.d.comb += [
                vector.as_value().eq(record.data[:bits]),
                self.o_encode.payload.weight_set.eq(state.view.entry.weight_set),
                self.o_encode.valid.eq(gather.o.valid & query.encode & ~bad),
                gather.o.ready.eq(~self.o_encode.valid | self.o_encode.ready),
            ]
            taken = gather.o.valid & gather.o.ready
            for head, port in enumerate(self.o_query):
                m.d.comb += [
                    port.valid.eq(taken & ~bad & (state.record == head)),
                    port.payload.slot.eq(slot.number),
                    port.payload.vector.as_value().eq(record.data[:bits]),
                    port.payload.exponent.eq(held.exponents[head]),
                ]
            with m.If(taken):
                m.d.sync += state.record.eq(state.record + 1)
                with m.If(query.heads_done):
                    m.d.sync += query.codes.as_value().eq(record.data[:config.group * config.code_bits])
                with m.If(bad):
                    m.d.sync += [state.error.eq(Error.DATA), state.drained.eq(record.last)]
                with m.If(final | bad):
                    m.next = "CODES"
        with m.State("CODES"):
            with m.If(query.pending == 0):
                with m.If(state.error == Error.NONE):
                    m.next = "ISSUE"
                with m.Elif(state.drained):
                    m.next = "STATUS"
                with m.Else():
                    m.next = "REFUSE"
        self._issue_state(m, slot)

    def _issue_state(self, m, slot):
        """Send the job and its issue note together; each holds until taken."""
        job_sent, note_sent = Signal(), Signal()
        with m.State("ISSUE"):
            m.d.comb += [self.o_job.valid.eq(~job_sent), self.o_issued.valid.eq(~note_sent)]
            m.d.sync += [
                job_sent.eq(job_sent | self.o_job.ready),
                note_sent.eq(note_sent | self.o_issued.ready),
            ]
            with m.If((job_sent | self.o_job.ready) & (note_sent | self.o_issued.ready)):
                m.d.comb += slot.claim.eq(1)
                m.d.sync += [job_sent.eq(0), note_sent.eq(0)]
                m.next = "IDLE"

    def _describe_job(self, m, state, slot, codes):
        held, job = state.held, self.o_job.payload.job
        m.d.comb += [
            job.tag.eq(held.tag),
            job.slot.eq(slot.number),
            job.visible.eq(state.visible),
            job.entry.eq(state.view.entry),
            self.o_job.payload.codes.eq(codes),
            self.o_issued.payload.tag.eq(held.tag),
            self.o_issued.payload.slot.eq(slot.number),
        ]
        for name in ("select", "logits_only", "summaries", "full", "coarse", "sink", "recent",
                     "minimum"):
            m.d.comb += job[name].eq(held[name])
        for name in ("logits_only", "want_output", "want_state"):
            m.d.comb += self.o_issued.payload[name].eq(held[name])

    def _append_states(self, m, state):
        config, held, view, gather = self.config, state.held, state.view, state.gather
        beat_bytes = config.memory_bytes
        plain = 2 * config.row_bytes + config.exponent_bytes
        record = gather.o.payload
        row = self.o_append.payload
        row_bits = config.row_bytes * 8
        side_bits = config.blocks * EXPONENT_BITS
        with m.State("APPEND"):
            final, bad = self._next_record(m, state, held.count)
            nan = Signal()
            exponents = record.data[2 * row_bits:2 * row_bits + 2 * side_bits]
            m.d.comb += [
                gather.beats.eq(Mux(held.has_code,
                                    -(-(plain + config.code_bits // 8) // beat_bytes),
                                    -(-plain // beat_bytes))),
                nan.eq(Cat(exponents.word_select(i, EXPONENT_BITS) == EXPONENT_NAN
                           for i in range(2 * config.blocks)).any()),
                self.o_append.valid.eq(gather.o.valid),
                gather.o.ready.eq(self.o_append.ready),
                row.error.eq(Mux(bad, Error.DATA, Mux(nan, Error.EXPONENT, Error.NONE))),
                row.context.eq(held.context),
                row.position.eq(view.entry.length + state.record),
                row.last.eq(final | bad),
                row.has_code.eq(held.has_code),
                row.key.eq(record.data[:row_bits]),
                row.value.eq(record.data[row_bits:2 * row_bits]),
                row.keys.as_value().eq(exponents[:side_bits]),
                row.values.as_value().eq(exponents[side_bits:]),
                row.code.eq(record.data[plain * 8:plain * 8 + config.code_bits]),
                row.entry.eq(view.entry),
            ]
            with m.If(gather.o.valid & gather.o.ready):
                m.d.sync += [state.record.eq(state.record + 1), state.drained.eq(record.last)]
                with m.If(final | bad):
                    m.next = "APPENDED"
        with m.State("APPENDED"):
            m.d.comb += self.i_appended.ready.eq(1)
            with m.If(self.i_appended.valid):
                m.d.sync += state.error.eq(self.i_appended.payload.error)
                with m.If(self.i_appended.payload.error == Error.NONE):
                    m.d.comb += [
                        self.o_length.valid.eq(1),
                        self.o_length.payload.index.eq(held.context),
                        self.o_length.payload.length.eq(view.entry.length + held.count),
                    ]
                    m.d.sync += view.entry.length.eq(view.entry.length + held.count)
                with m.If(state.drained):
                    m.next = "STATUS"
                with m.Else():
                    m.next = "REFUSE"

    def _weight_states(self, m, state):
        config, held, gather = self.config, state.held, state.gather
        with m.State("WEIGHTS"):
            record = gather.o.payload
            final, bad = self._next_record(m, state, held.count)
            m.d.comb += [
                gather.beats.eq(config.row_bytes // config.memory_bytes),
                self.o_weight.valid.eq(gather.o.valid & ~bad),
                self.o_weight.payload.index.eq(held.index + state.record),
                self.o_weight.payload.data.eq(record.data[:config.head_dim * 8]),
                gather.o.ready.eq(bad | self.o_weight.ready),
            ]
            with m.If(gather.o.valid & gather.o.ready):
                m.d.sync += state.record.eq(state.record + 1)
                with m.If(bad):
                    m.d.sync += state.error.eq(Error.DATA)
                with m.If(bad & ~record.last):
                    m.next = "REFUSE"
                with m.Elif(final | bad):
                    m.next = "STATUS"


class _State:
    """Registers that the states share."""

    def __init__(self, *, held, view, error, visible, gather, record, drained):
        self.held = held
        self.view = view
        self.error = error
        self.visible = visible
        self.gather = gather
        self.record = record
        self.drained = drained
        self.finals = []


class _Slot:
    """The slot that the next query takes."""

    def __init__(self, number, next_number, free, claim):
        self.number = number
        self.next = next_number
        self.free = free
        self.claim = claim


class _Query:
    """What is gathered of the query at hand."""

    def __init__(self, *, codes, pending, records, heads_done, encode):
        self.codes = codes
        self.pending = pending  # heads whose code is still to come
        self.records = records
        self.heads_done = heads_done
        self.encode = encode
