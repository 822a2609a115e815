"""The device's end of CXL.mem at the level of messages."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_config
from hw.config.memory import MemoryConfig
from hw.memory.endpoint_slots import EndpointSlots, pending_message
from hw.memory.layouts import (
    CONTEXT_BITS,
    QOS_BITS,
    MetaAction,
    Operation,
    Status,
    line_request,
    line_response,
    m2s_data,
    m2s_request,
    s2m_data,
    s2m_response,
)
from hw.memory.load import LEVELS, Load
from hw.stream import Arbiter, Queue

__all__ = ["Endpoint", "endpoint_slot_count", "violation_log"]

WAITING_BITS = 10
META0_STATE, META_NO_OP = 0, 3
RESPONSES = 8  # of each kind, until the link takes them


class Req(enum.Enum, shape=4):
    """Opcodes of M2S Req."""

    INV = 0
    RD = 1
    RD_DATA = 2
    RD_FWD = 3
    WR_FWD = 4
    SPEC_RD = 8
    INV_NT = 9
    CLN_EVCT = 10


class Rwd(enum.Enum, shape=4):
    """Opcodes of M2S RwD that are answered."""

    WR = 1
    WR_PTL = 2


class Fate(enum.Enum, shape=2):
    """What is done with a message."""

    ACCESS = 0
    SILENT = 1
    VIOLATION = 2


_HEADER = {"is_data": 1, "opcode": 4, "snp_type": 3, "meta_field": 2, "meta_value": 2, "tag": 16,
           "line": 46, "ld_id": 4}


def violation_log() -> data.StructLayout:
    """The first offender: ``is_data`` tells RwD from Req; ``line`` is address bits 51:6."""
    return data.StructLayout({"valid": 1, **_HEADER})


def _job() -> data.StructLayout:
    return data.StructLayout({"fate": Fate, **_HEADER})


def _data_job() -> data.StructLayout:
    message = m2s_data()
    return data.StructLayout({
        "job": _job(), "poison": 1, "enables": message["enables"].shape,
        "data": message["data"].shape})


def endpoint_slot_count(config: MemoryConfig) -> int:
    """Requests under way: as many as there are buffers, rounded up, if tags allow."""
    buffers = config.cxl_requests + config.cxl_data
    return 1 << min((buffers - 1).bit_length(), config.tag_bits)


class Endpoint(wiring.Component):
    """Turns messages into requests for lines, and answers into responses.

    Each channel has its buffers, one per credit; a message's fate is known as it enters. Both
    channels take turns, and each keeps its order. Responses leave in the order of ``i``.

    **Latency**: 2 cycles from ``i_request`` or ``i_data`` to ``o``, and 2 from ``i`` to
    ``o_response`` or ``o_data``. Credit and ``violation`` pulse 2 cycles after the message came.

    **Throughput**: one message per cycle, from one channel or both; one response per cycle.

    **Numerics**: `golden.memory.device.respond`, in every field, with `golden.memory.device.Load`
    two cycles after ``waiting``, in the cycle after the transfer on ``i``.

    **Errors**: ``violation`` for a reserved encoding: no response, no access, the credit goes
    back, and ``log`` keeps the first. MISSING and REFUSED are answered as non-existent memory.

    Parameters
    ----------
    config : MemoryConfig

    Members
    -------
    context, qos : ``In``
        Of every request.
    poison_on_error : ``In(1)``
        The data of non-existent memory are poisoned.
    waiting : ``In(10)``
    rises, falls : ``In``, 3 counts
        As in `Load`.
    i_request : ``In(stream.Signature(m2s_request()))``
    i_data : ``In(stream.Signature(m2s_data()))``
    o : ``Out(stream.Signature(line_request(config)))``
        Source 0; ``enables`` of anything but a write are 0.
    i : ``In(stream.Signature(line_response(config)))``
    o_response : ``Out(stream.Signature(s2m_response()))``
    o_data : ``Out(stream.Signature(s2m_data()))``
    credit_request, credit_data : ``Out(1)``
        A buffer is free again.
    violation : ``Out(1)``
    log : ``Out(violation_log())``
    clear_log : ``In(1)``
        The next offender is logged again.
    """

    def __init__(self, config: MemoryConfig):
        self._config = check_config("Endpoint", config, MemoryConfig)
        thresholds = data.ArrayLayout(WAITING_BITS, LEVELS)
        super().__init__({
            "context": In(CONTEXT_BITS),
            "qos": In(QOS_BITS),
            "poison_on_error": In(1),
            "waiting": In(WAITING_BITS),
            "rises": In(thresholds),
            "falls": In(thresholds),
            "i_request": In(stream.Signature(m2s_request())),
            "i_data": In(stream.Signature(m2s_data())),
            "o": Out(stream.Signature(line_request(config))),
            "i": In(stream.Signature(line_response(config))),
            "o_response": Out(stream.Signature(s2m_response())),
            "o_data": Out(stream.Signature(s2m_data())),
            "credit_request": Out(1),
            "credit_data": Out(1),
            "violation": Out(1),
            "log": Out(violation_log()),
            "clear_log": In(1),
        })

    @property
    def config(self) -> MemoryConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.slots = slots = EndpointSlots(count=endpoint_slot_count(self.config))
        m.submodules.requests = requests = Queue(_job(), depth=self.config.cxl_requests)
        m.submodules.writes = writes = Queue(_data_job(), depth=self.config.cxl_data)
        m.submodules.turns = turns = Arbiter(_job(), count=2)
        self._enter(m, self.i_request, requests.i, requests.i.payload, is_data=False)
        self._enter(m, self.i_data, writes.i, writes.i.payload.job, is_data=True)
        for name in ("poison", "enables", "data"):
            m.d.comb += writes.i.payload[name].eq(self.i_data.payload[name])
        wiring.connect(m, requests.o, turns.i[0])
        m.d.comb += [
            turns.i[1].valid.eq(writes.o.valid),
            turns.i[1].payload.eq(writes.o.payload.job),
            writes.o.ready.eq(turns.i[1].ready),
        ]
        m.d.sync += [
            self.credit_request.eq(requests.o.valid & requests.o.ready),
            self.credit_data.eq(writes.o.valid & writes.o.ready),
        ]
        self._issue(m, turns.o, writes.o.payload, slots)
        self._note(m, turns.o)
        self._answer(m, slots)
        return m

    def _enter(self, m, source, target, job, *, is_data):
        """Put a message into its buffer, with its fate."""
        message = source.payload
        known = Rwd if is_data else Req
        is_known = Signal(name=f"is_known_{int(is_data)}")
        is_hint = Signal(name=f"is_hint_{int(is_data)}")
        is_good = Signal(name=f"is_good_{int(is_data)}")
        with m.Switch(message.opcode):
            for opcode in known:
                with m.Case(opcode):
                    m.d.comb += is_known.eq(1)
                    if opcode in (Req.RD_FWD, Req.WR_FWD, Req.SPEC_RD):
                        m.d.comb += is_hint.eq(1)
        m.d.comb += [
            is_good.eq(is_known & ~message.snp_type[2] & (
                (message.meta_field == META0_STATE) | (message.meta_field == META_NO_OP))),
            target.valid.eq(source.valid),
            source.ready.eq(target.ready),
            job.fate.eq(Mux(is_hint, Fate.SILENT, Mux(is_good, Fate.ACCESS, Fate.VIOLATION))),
            job.is_data.eq(is_data),
            job.line.eq(message.address if is_data else message.address[1:]),
        ]
        for name in ("opcode", "snp_type", "meta_field", "meta_value", "tag", "ld_id"):
            m.d.comb += job[name].eq(message[name])

    def _issue(self, m, turn, write, slots):
        """Send a request with a free slot; what asks for no access just goes."""
        m.submodules.issued = issued = Queue(line_request(self.config), depth=2)
        wiring.connect(m, issued.o, wiring.flipped(self.o))
        job, request = turn.payload, issued.i.payload
        is_access = Signal()
        is_read = ~job.is_data & ((job.opcode == Req.RD.value) | (job.opcode == Req.RD_DATA.value))
        is_raise = ~job.is_data & (job.opcode == Req.RD_DATA.value)
        m.d.comb += [
            is_access.eq(job.fate == Fate.ACCESS),
            issued.i.valid.eq(turn.valid & is_access & slots.is_free),
            turn.ready.eq(~is_access | (slots.is_free & issued.i.ready)),
            request.line.eq(job.line),
            request.context.eq(self.context),
            request.qos.eq(self.qos),
            request.tag.eq(slots.slot),
            request.operation.eq(Mux(job.is_data, Operation.WRITE,
                                     Mux(is_read, Operation.READ, Operation.META))),
            request.meta_action.eq(Mux(is_raise, MetaAction.RAISE, Mux(
                job.meta_field == META0_STATE, MetaAction.STORE, MetaAction.KEEP))),
            request.meta.eq(job.meta_value),
            request.poison.eq(job.is_data & write.poison),
            request.enables.eq(Mux(job.is_data, write.enables, 0)),
            request.data.eq(write.data),
            slots.take.eq(issued.i.valid & issued.i.ready),
            slots.entry.has_data.eq(is_read),
            slots.entry.returns_meta.eq(~job.is_data & (job.opcode != Req.CLN_EVCT.value)),
            slots.entry.tag.eq(job.tag),
            slots.entry.ld_id.eq(job.ld_id),
        ]

    def _note(self, m, turn):
        """Tell of a violation, and keep the first."""
        found = Signal()
        m.d.comb += found.eq(turn.valid & (turn.payload.fate == Fate.VIOLATION))
        m.d.sync += self.violation.eq(found)
        with m.If(found & (~self.log.valid | self.clear_log)):
            m.d.sync += [self.log.valid.eq(1),
                         *(self.log[name].eq(turn.payload[name]) for name in _HEADER)]
        with m.Elif(self.clear_log):
            m.d.sync += self.log.valid.eq(0)

    def _answer(self, m, slots):
        """Find the message of an answer; a cycle later, queue its response.

        There is room for an answer, and for the one before, before it is taken.
        """
        m.submodules.load = load = Load(count_bits=WAITING_BITS)
        m.submodules.responses = responses = Queue(s2m_response(), depth=RESPONSES)
        m.submodules.lines = lines = Queue(s2m_data(), depth=RESPONSES)
        wiring.connect(m, responses.o, wiring.flipped(self.o_response))
        wiring.connect(m, lines.o, wiring.flipped(self.o_data))
        answer, is_there = Signal(line_response(self.config)), Signal()
        m.d.comb += [
            load.waiting.eq(self.waiting),
            load.rises.eq(self.rises),
            load.falls.eq(self.falls),
            self.i.ready.eq((responses.level < RESPONSES - 1) & (lines.level < RESPONSES - 1)),
            slots.find.eq(self.i.valid & self.i.ready),
            slots.find_slot.eq(self.i.payload.tag),
        ]
        m.d.sync += is_there.eq(slots.find)
        with m.If(slots.find):
            m.d.sync += answer.eq(self.i.payload)
        message, exists, has_meta = Signal(pending_message()), Signal(), Signal()
        m.d.comb += [
            message.eq(slots.found),
            exists.eq(answer.status == Status.DONE),
            has_meta.eq(exists & message.returns_meta),
            responses.i.valid.eq(is_there & ~message.has_data),
            lines.i.valid.eq(is_there & message.has_data),
            lines.i.payload.opcode.eq(~exists),
            lines.i.payload.poison.eq(Mux(exists, answer.poison, self.poison_on_error)),
            lines.i.payload.data.eq(answer.data | (~exists).replicate(len(answer.data))),
        ]
        for target in (responses.i.payload, lines.i.payload):
            m.d.comb += [
                Cat(target.meta_field, target.meta_value).eq(Mux(
                    has_meta, Cat(C(META0_STATE, 2), answer.meta), META_NO_OP)),
                target.tag.eq(message.tag),
                target.ld_id.eq(message.ld_id),
                target.dev_load.eq(load.level),
            ]
