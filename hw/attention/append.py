"""Appends tokens to a context: rows, page summaries, codes."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.admission import Admission, admitted_row
from hw.attention.append_sequence import AppendSequence, append_record
from hw.attention.layouts import append_row, code_write, encode_request
from hw.attention.paging import LookupPort
from hw.attention.row_beats import RowBeats
from hw.attention.row_writer import RowWriter, append_status
from hw.attention.summary import PageSummary
from hw.bus import axi4
from hw.checks import check_int
from hw.config import PLANE_BITS, AttentionConfig
from hw.stream import Fork, Queue

__all__ = ["Append"]


class Append(wiring.Component):
    """Takes rows to be appended, and stores all that later queries need of them.

    Of each token, in this order: its K and V rows, the summary rows of the page that it completes,
    and its code with its exponents (to the code memory, or to its code line in memory). The next
    token is looked up, summed and encoded meanwhile.

    **Latency**: 10 cycles from a row on ``i`` to its first write beat, 12 where a page ends.

    **Throughput**: per token, the longest of its encoding, its beats on the bus and 2 cycles,
    2 + 2 * head_dim / summary_lanes cycles, and 8 cycles.

    **Numerics**: ``golden.mxint.canonical``, ``golden.summary.page_summaries``.

    **Errors**: a command ends with the first of the errors that came with a row, and WINDOW (a row
    or summary outside its window); from the row that met it on, nothing is written. Otherwise with
    WRITE if any write response was an error; the sums of the unfinished page then count tokens that
    may be missing in memory.

    Parameters
    ----------
    config : AttentionConfig
    id_bits : int
        Width of the ids of ``axi``; the id is 0.
    summary_lanes : int
        Elements summed up per cycle for page summaries, see `PageSummary`.

    Members
    -------
    i : ``In(stream.Signature(append_row(config)))``
        Rows. ``code_line * lanes`` of a context must be a multiple of 16.
    paging : ``Out(LookupPort(config))``
        Finds rows.
    o_encode : ``Out(stream.Signature(encode_request(config)))``
        Keys that come without a code.
    i_encoded : ``In(stream.Signature(code_bits))``
        Their codes, in order.
    axi : ``Out(axi4.WriteSignature(address_bits, memory_bytes, id_bits))``
        The memory.
    o_code : ``Out(stream.Signature(code_write(config)))``
        New codes for the code memory; only with ``code_source`` "resident".
    o_done : ``Out(stream.Signature(append_status(config)))``
        Once per command, when its codes are written and all write responses have come.
    """

    def __init__(self, config: AttentionConfig, *, id_bits=1, summary_lanes=8):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Append config must be an AttentionConfig, not {config!r}")
        self._config = config
        self._id_bits = check_int("Append id_bits", id_bits, minimum=1)
        self._summary_lanes = check_int("Append summary_lanes", summary_lanes, minimum=1)
        members = {
            "i": In(stream.Signature(append_row(config))),
            "paging": Out(LookupPort(config)),
            "o_encode": Out(stream.Signature(encode_request(config))),
            "i_encoded": In(stream.Signature(config.code_bits)),
            "axi": Out(axi4.WriteSignature(config.address_bits, config.memory_bytes, id_bits)),
            "o_done": Out(stream.Signature(append_status(config))),
        }
        if config.code_source == "resident":
            members["o_code"] = Out(stream.Signature(code_write(config)))
        super().__init__(members)

    @property
    def config(self) -> AttentionConfig:
        return self._config

    @property
    def id_bits(self):
        return self._id_bits

    @property
    def summary_lanes(self):
        return self._summary_lanes

    def elaborate(self, platform):
        m = Module()
        config, connect = self.config, wiring.connect
        row = admitted_row(config)
        m.submodules.admission = admission = Admission(config)
        m.submodules.held = held = Queue(row, depth=1)
        m.submodules.fork = fork = Fork(row, count=4)
        m.submodules.summary = summary = PageSummary(config, lanes=self.summary_lanes)
        m.submodules.beats = beats = RowBeats(config)
        m.submodules.records = records = Queue(append_record(config), depth=2)
        # Where codes go to memory they wait; the encoder need not.
        m.submodules.codes = codes = Queue(config.code_bits, depth=2)
        m.submodules.sequence = sequence = AppendSequence(config)
        m.submodules.writer = writer = RowWriter(config, id_bits=self.id_bits)

        connect(m, wiring.flipped(self.i), admission.i)
        connect(m, admission.paging, wiring.flipped(self.paging))
        connect(m, admission.o, held.i)
        connect(m, held.o, fork.i)
        to_encoder, to_summary, to_beats, to_records = fork.o
        stored = held.o.payload.store
        self._ask_for_code(m, to_encoder)
        self._take(m, to_summary, summary.i, when=stored)
        m.d.comb += summary.i.payload.slot.eq(to_summary.payload.position)
        self._take(m, to_beats, beats.i, when=stored)
        self._take(m, to_records, records.i, when=Const(1))

        connect(m, records.o, sequence.i)
        connect(m, beats.o, sequence.i_rows)
        connect(m, summary.o, sequence.i_summary)
        connect(m, summary.o_exponents, sequence.i_exponents)
        connect(m, wiring.flipped(self.i_encoded), codes.i)
        connect(m, codes.o, sequence.i_encoded)
        connect(m, sequence.o, writer.i)
        connect(m, sequence.o_close, writer.i_close)
        if config.code_source == "resident":
            connect(m, sequence.o_code, wiring.flipped(self.o_code))
        connect(m, writer.axi, wiring.flipped(self.axi))
        connect(m, writer.o_done, wiring.flipped(self.o_done))
        return m

    def _take(self, m, source, target, *, when):
        """Connect a stream of rows to one of the same fields, for the rows that it wants."""
        names = [name for name, _ in target.payload.shape()]
        m.d.comb += [target.payload[name].eq(source.payload[name])
                     for name in names if name != "slot"]
        m.d.comb += [
            target.valid.eq(source.valid & when),
            source.ready.eq(target.ready | ~when),
        ]

    def _ask_for_code(self, m, source):
        """Ask for the code of a key that comes without one."""
        row, request = source.payload, self.o_encode.payload
        wanted = Signal()
        upper, lower = row.key[:len(row.key) // 2], row.key[len(row.key) // 2:]
        m.d.comb += [
            wanted.eq(row.store & ~row.has_code),
            request.is_key.eq(1),
            request.weight_set.eq(row.weight_set),
            request.exponents.eq(row["keys"]),
            self.o_encode.valid.eq(source.valid & wanted),
            source.ready.eq(self.o_encode.ready | ~wanted),
        ]
        m.d.comb += [
            element.eq(Cat(lower.word_select(index, PLANE_BITS),
                           upper.word_select(index, PLANE_BITS)).as_signed())
            for index, element in enumerate(request.vector)]
