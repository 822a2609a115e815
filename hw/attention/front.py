"""Front end: takes commands and their data, checks them, and starts the work."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.append_loader import AppendLoader
from hw.attention.contexts import context_length, context_view
from hw.attention.gather import Gather, GatherMode
from hw.attention.intake import Intake
from hw.attention.layouts import (
    Error,
    Opcode,
    append_row,
    command,
    command_status,
    data_beat,
    encode_request,
    issued_query,
    query_vector,
    retrieval_job,
)
from hw.attention.query_loader import QueryLoader
from hw.attention.slots import SlotPool
from hw.attention.weight_loader import WeightLoader, weight_row
from hw.config import AttentionConfig
from hw.stream import Fork

__all__ = ["Front"]


class Front(wiring.Component):
    """Takes one command at a time; queries go on down the pipeline while the next is taken.

    A query is loaded, encoded (unless its codes come with it) and issued; the front end is then
    free. An append holds it until the last write response, so that a later query sees the tokens.
    A query whose every slot is taken waits before its data.

    **Latency**: 3 cycles from a command to its first data beat being taken; 3 cycles from a query's
    last data beat, and 2 from its last code, to the job. A refused command: 3 cycles to its first
    data beat, 2 from its last data beat to its status.

    **Throughput**: a query holds the front end for its data beats, a cycle per record, its
    encoding, and 5 cycles.

    **Numerics**: none.

    **Errors**: a refused command's data are drained and its status carries the code: those of
    `Intake`, DATA, EXPONENT, and what the append unit answers. The next command finds everything
    as the refused one found it, but for rows of WEIGHTS before the bad one.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_command, i_data : ``In(stream)`` of ``command`` and ``data_beat``
    o_lookup, i_view : the context table's lookup
    o_length : ``Out(stream)`` of ``context_length``
    o_query : per head, ``Out(stream)`` of ``query_vector``
    o_encode, i_encoded : the encoder's query side
    o_job : ``Out(stream)`` of ``retrieval_job``
    o_issued : ``Out(stream)`` of ``issued_query``, one beside each job
    i_release : ``In(stream)`` of slot numbers whose query is done, always ready
    o_append, i_appended : streams of ``append_row``, and of {error} per APPEND command
    o_weight : ``Out(stream)`` of ``weight_row``
    o_status : ``Out(stream)`` of ``command_status``: of each command but the queries issued
    idle : ``Out(1)``
        No command is held, or offered.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Front config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_command": In(stream.Signature(command(config))),
            "i_data": In(stream.Signature(data_beat(config))),
            "o_lookup": Out(stream.Signature(16)),
            "i_view": In(stream.Signature(context_view(config))),
            "o_length": Out(stream.Signature(context_length(config))),
            "o_query": Out(stream.Signature(query_vector(config))).array(config.group),
            "o_encode": Out(stream.Signature(encode_request(config))),
            "i_encoded": In(stream.Signature(config.code_bits)),
            "o_job": Out(stream.Signature(retrieval_job(config))),
            "o_issued": Out(stream.Signature(issued_query(config))),
            "i_release": In(stream.Signature(config.slot_bits)),
            "o_append": Out(stream.Signature(append_row(config))),
            "i_appended": In(stream.Signature(data.StructLayout({"error": Error}))),
            "o_weight": Out(stream.Signature(weight_row(config))),
            "o_status": Out(stream.Signature(command_status(config))),
            "idle": Out(1),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.intake = intake = Intake(config)
        m.submodules.slots = slots = SlotPool(count=config.query_slots)
        m.submodules.gather = gather = Gather(config)
        m.submodules.queries = queries = QueryLoader(config)
        m.submodules.appends = appends = AppendLoader(config)
        m.submodules.weights = weights = WeightLoader(config)
        # To issue a query: its slot for the job, and for the note that the results side gets.
        m.submodules.issue = issue = Fork(config.slot_bits, count=2)

        wiring.connect(m, wiring.flipped(self.i_command), intake.i)
        wiring.connect(m, intake.o_lookup, wiring.flipped(self.o_lookup))
        wiring.connect(m, wiring.flipped(self.i_view), intake.i_view)
        wiring.connect(m, wiring.flipped(self.i_release), slots.i)
        wiring.connect(m, wiring.flipped(self.i_data), gather.i)
        self._connect_loaders(m, queries, appends, weights)
        loaders = {Opcode.QUERY: queries, Opcode.APPEND: appends, Opcode.WEIGHTS: weights}
        done, error = self._choose_loader(m, intake, gather, loaders)
        self._describe_job(m, intake, queries, issue)
        self._control(m, intake, slots, gather, issue, done, error)
        m.d.comb += [
            queries.slot.eq(slots.o.payload),
            issue.i.payload.eq(slots.o.payload),
            self.idle.eq(intake.idle),
        ]
        return m

    def _connect_loaders(self, m, queries, appends, weights):
        for index, port in enumerate(self.o_query):
            wiring.connect(m, queries.o_query[index], wiring.flipped(port))
        wiring.connect(m, queries.o_encode, wiring.flipped(self.o_encode))
        wiring.connect(m, wiring.flipped(self.i_encoded), queries.i_encoded)
        wiring.connect(m, appends.o_append, wiring.flipped(self.o_append))
        wiring.connect(m, wiring.flipped(self.i_appended), appends.i_appended)
        wiring.connect(m, appends.o_length, wiring.flipped(self.o_length))
        wiring.connect(m, weights.o_weight, wiring.flipped(self.o_weight))

    def _choose_loader(self, m, intake, gather, loaders):
        """The records go to the opcode's loader. Returns its ``done`` and ``error``."""
        held = intake.o.payload
        done, error = Signal(), Signal(Error)
        for loader in loaders.values():
            m.d.comb += [
                loader.command.eq(held.command),
                loader.entry.eq(held.view.entry),
                loader.index.eq(gather.index),
                loader.i.payload.eq(gather.o.payload),
            ]
        with m.Switch(held.command.opcode):
            for opcode, loader in loaders.items():
                with m.Case(opcode):
                    m.d.comb += [
                        gather.records.eq(loader.records),
                        gather.beats.eq(loader.beats),
                        loader.i.valid.eq(gather.o.valid),
                        gather.o.ready.eq(loader.i.ready),
                        done.eq(loader.done),
                        error.eq(loader.error),
                    ]
        return done, error

    def _describe_job(self, m, intake, queries, issue):
        held, job, note = intake.o.payload, self.o_job.payload.job, self.o_issued.payload
        for half, port, query in zip(
                issue.o, (self.o_job, self.o_issued), (job, note), strict=True):
            m.d.comb += [
                port.valid.eq(half.valid),
                half.ready.eq(port.ready),
                query.slot.eq(half.payload),
            ]
        m.d.comb += [
            job.visible.eq(held.visible),
            job.entry.eq(held.view.entry),
            self.o_job.payload.codes.eq(queries.codes),
        ]
        for name in ("tag", "logits_only", "want_output", "want_state"):
            m.d.comb += note[name].eq(held.command[name])
        for name in ("tag", "select", "logits_only", "summaries", "full", "coarse", "sink",
                     "recent", "minimum"):
            m.d.comb += job[name].eq(held.command[name])

    def _control(self, m, intake, slots, gather, issue, done, error):
        """From a checked command to its job or status."""
        held, status = intake.o.payload, self.o_status.payload
        is_query = held.command.opcode == Opcode.QUERY
        outcome = Signal(Error)
        with m.FSM():
            with m.State("START"):
                m.d.sync += outcome.eq(held.error)
                with m.If(intake.o.valid):
                    with m.If(held.error != Error.NONE):
                        m.next = "DRAIN"
                    with m.Elif(~is_query | slots.o.valid):
                        m.next = "LOAD"
            with m.State("LOAD"):
                m.d.comb += gather.mode.eq(GatherMode.GATHER)
                m.d.sync += outcome.eq(error)
                with m.If(done):
                    with m.If(error != Error.NONE):
                        m.next = "DRAIN"
                    with m.Elif(is_query):
                        m.next = "ISSUE"
                    with m.Else():
                        m.next = "STATUS"
            with m.State("ISSUE"):
                m.d.comb += [
                    issue.i.valid.eq(1),
                    slots.o.ready.eq(issue.i.ready),
                    intake.o.ready.eq(issue.i.ready),
                ]
                with m.If(issue.i.ready):
                    m.next = "START"
            with m.State("DRAIN"):
                m.d.comb += gather.mode.eq(GatherMode.DRAIN)
                with m.If(gather.ended):
                    m.next = "STATUS"
            with m.State("STATUS"):
                m.d.comb += [
                    self.o_status.valid.eq(1), intake.o.ready.eq(self.o_status.ready)]
                with m.If(self.o_status.ready):
                    m.next = "START"
        m.d.comb += [status.tag.eq(held.command.tag), status.error.eq(outcome)]
        with m.If((held.command.opcode == Opcode.APPEND) & held.view.valid):
            m.d.comb += status.length.eq(Mux(
                outcome == Error.NONE, self.o_length.payload.length, held.view.entry.length))
