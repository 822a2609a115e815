"""Decoder of the entropy-coded formats."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.config import StreamingConfig
from hw.shared import Once
from hw.stream import Queue
from hw.streaming.huffman.geometry import (
    LANES,
    WORD_BITS,
    check_coded,
    coded_row,
    pages_held,
)
from hw.streaming.huffman.lane import Lane
from hw.streaming.huffman.scaler import RowScaler
from hw.streaming.huffman.sequencer import PageSequencer
from hw.streaming.huffman.symbols import SymbolLookup
from hw.streaming.huffman.tables import CodeSwitch, CodeTable
from hw.streaming.huffman.walker import SCALE_WORDS, CodedWalker
from hw.streaming.huffman.words import PayloadWords
from hw.streaming.layouts import Reason, chunk_begin, decode_fault, element_beat, payload_beat
from hw.streaming.wire import SCALE_BYTES

__all__ = ["HuffmanDecoder"]

# Steps go on for as long as one cycle after the queue is found half full, and take `STEP_LATENCY`
# cycles to reach it.
DEPTH = 16
STEP_LATENCY = 1 + SymbolLookup.LATENCY


class HuffmanDecoder(wiring.Component):
    """Decodes payloads of the entropy-coded formats, eight elements per cycle.

    Words of a page arrive in the lanes' memories while the pages before are decoded, and the tables
    of a frame while the frame before is. All lanes step together.

    Of a payload that is over too early, or that cannot be decoded, the pages that were complete
    come out.

    **Latency**: on a link of 8 bytes 17 cycles (`LATENCY`) from the last payload beat of a frame's
    first page to its first element beat, if its tables are built.

    **Throughput**: eight elements per cycle while pages arrive in time, whatever their codes, and
    without a gap between the pages of a frame; on the link, eight bytes per cycle. Frames follow
    each other with a gap of a few cycles.

    **Numerics**: ``golden.streaming.payload.decode_payload``.

    **Errors**: ``TABLE``, ``DIRECTORY``, ``OVERRUN``, ``UNDERRUN`` or ``NONFINITE``, in
    ``o_fault``: the lowest that applies.

    Parameters
    ----------
    config : StreamingConfig
        With at least one entropy-coded format.

    Members
    -------
    i_begin : ``In(stream.Signature(chunk_begin(config)))``
        A frame of an entropy-coded format.
    i_payload : ``In(stream.Signature(payload_beat(config)))``
        Its payload, of a length within the bounds of its format.
    o_element : ``Out(stream.Signature(element_beat(config)))``
        Its rows.
    o_fault : ``Out(stream.Signature(decode_fault(config)))``
        One for each frame, after its rows and before those of the next.
    """

    LATENCY = 17

    def __init__(self, config: StreamingConfig):
        self._config = check_coded("HuffmanDecoder", config)
        super().__init__({
            "i_begin": In(stream.Signature(chunk_begin(config))),
            "i_payload": In(stream.Signature(payload_beat(config))),
            "o_element": Out(stream.Signature(element_beat(config))),
            "o_fault": Out(stream.Signature(decode_fault(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, symbol_bits = self.config, self.config.huffman_bits
        m.submodules.words = words = PayloadWords(config)
        m.submodules.walker = walker = CodedWalker(config)
        m.submodules.sequencer = sequencer = PageSequencer(config)
        m.submodules.codes = codes = CodeSwitch(symbol_bits=symbol_bits)
        m.submodules.rows = rows = Queue(coded_row(config), depth=DEPTH)
        m.submodules.scaler = scaler = RowScaler(config)
        tables = [Once(CodeTable(symbol_bits=symbol_bits)) for _ in range(2)]
        lanes = [Once(Lane(head_dim=config.head_dim)) for _ in range(LANES)]
        lookups = [Once(SymbolLookup(symbol_bits=symbol_bits)) for _ in range(LANES)]
        m.submodules.table_k, m.submodules.table_v = tables
        for index in range(LANES):
            m.submodules[f"lane_{index}"] = lanes[index]
            m.submodules[f"lookup_{index}"] = lookups[index]

        wiring.connect(m, wiring.flipped(self.i_begin), walker.i_begin)
        wiring.connect(m, wiring.flipped(self.i_payload), words.i)
        wiring.connect(m, words.o, walker.i)
        wiring.connect(m, walker.o, sequencer.i)
        wiring.connect(m, rows.o, scaler.i)
        wiring.connect(m, scaler.o_element, wiring.flipped(self.o_element))
        wiring.connect(m, scaler.o_fault, wiring.flipped(self.o_fault))
        self._connect_tables(m, walker, tables, sequencer, codes)
        self._connect_lanes(m, walker, sequencer, codes, lanes)
        self._connect_lookups(m, tables, sequencer, codes, lanes, lookups)
        self._collect(m, walker, sequencer, lanes, lookups, rows)
        return m

    def _connect_tables(self, m, walker, tables, sequencer, codes):
        is_wanted = Signal()  # a frame whose tables arrive, or wait to be taken over
        with m.If(walker.begins):
            m.d.sync += is_wanted.eq(1)
        with m.Elif(sequencer.takes_tables):
            m.d.sync += is_wanted.eq(0)
        for table, enable in zip(tables, walker.table_enable, strict=True):
            m.d.comb += [
                table.start.eq(walker.begins),
                table.last_symbol.eq(walker.last_symbol),
                table.word_enable.eq(enable),
                table.word.eq(walker.word),
            ]
        m.d.comb += [
            walker.may_begin.eq(~is_wanted),
            sequencer.tables_ready.eq(Cat(table.ready for table in tables).all()),
            sequencer.tables_good.eq(Cat(table.is_good for table in tables).all()),
            codes.takes.eq(sequencer.takes_tables),
            codes.swaps.eq(sequencer.ends_row),
            codes.key.eq(tables[0].code),
            codes.value.eq(tables[1].code),
        ]

    def _connect_lanes(self, m, walker, sequencer, codes, lanes):
        for index, lane in enumerate(lanes):
            m.d.comb += [
                lane.opens.eq(walker.opens),
                lane.write_enable.eq(walker.lane_enable[index]),
                lane.write_page.eq(walker.lane_page),
                lane.word.eq(walker.lane_word),
                lane.loads.eq(sequencer.loads),
                lane.page.eq(sequencer.page),
                lane.bits.eq(walker.o.payload.bits[index]),
                lane.limits.eq(codes.code.limits),
                lane.steps.eq(sequencer.steps),
                lane.ends.eq(sequencer.ends),
            ]
        m.d.comb += walker.frees.eq(sequencer.frees)

    def _connect_lookups(self, m, tables, sequencer, codes, lanes, lookups):
        # The frame whose tables are built never has the bank of the one that is decoded.
        bank, is_value = Signal(), delay(m, sequencer.row[0], 1, name="is_value")
        m.d.sync += bank.eq(bank ^ sequencer.takes_tables)
        for lane, lookup in zip(lanes, lookups, strict=True):
            m.d.comb += [
                lookup.window.eq(lane.window),
                lookup.length.eq(lane.length),
                lookup.offsets.eq(codes.code.offsets),
                lookup.is_value.eq(is_value),
                lookup.bank.eq(bank),
                lookup.place_bank.eq(~bank),
            ]
            for placed, table in ((lookup.key, tables[0]), (lookup.value, tables[1])):
                m.d.comb += [placed[name].eq(getattr(table, name))
                             for name in ("place_enable", "rank", "element")]

    def _collect(self, m, walker, sequencer, lanes, lookups, rows):
        """What the lanes decode, with the scale of its row, and the faults of a frame."""
        def later(value, name):
            return delay(m, value, STEP_LATENCY, name=name)

        item = rows.i.payload
        is_bad = later(sequencer.is_bad, "is_bad")
        is_refused = later(sequencer.is_refused, "is_refused")
        m.d.comb += [
            item.scale.eq(later(self._scale(m, walker, sequencer), "scale")),
            item.last.eq(later(sequencer.ends_row, "ends_row")),
            item.is_end.eq(later(sequencer.ends_frame, "ends_frame")),
            rows.i.valid.eq(later(sequencer.steps | sequencer.ends_frame, "valid")),
        ]
        m.d.comb += [q.eq(lookup.element) for q, lookup in zip(item.q, lookups, strict=True)]
        m.d.sync += sequencer.may_step.eq(rows.level < DEPTH // 2)

        overrun, underrun = Signal(), Signal()
        m.d.sync += [
            overrun.eq(~item.is_end & (overrun | Cat(lane.overruns for lane in lanes).any())),
            underrun.eq(~item.is_end & (underrun | Cat(lane.underruns for lane in lanes).any())),
        ]
        m.d.comb += item.reason.eq(Mux(is_bad, Reason.TABLE, Mux(
            is_refused, Reason.DIRECTORY, Mux(
                overrun, Reason.OVERRUN, Mux(underrun, Reason.UNDERRUN, Reason.NONE)))))

    def _scale(self, m, walker, sequencer):
        """The scale of the row in which a step is."""
        m.submodules.scales = scales = Memory(
            shape=WORD_BITS, depth=SCALE_WORDS * pages_held(self.config.head_dim), init=[])
        write, read = scales.write_port(), scales.read_port(domain="comb")
        lane_bits = (WORD_BITS // (8 * SCALE_BYTES) - 1).bit_length()
        m.d.comb += [
            write.en.eq(walker.scale_enable),
            write.addr.eq(walker.scale_index),
            write.data.eq(walker.word),
            read.addr.eq(Cat(sequencer.row[lane_bits:], sequencer.row_page)),
        ]
        return read.data.word_select(sequencer.row[:lane_bits], 8 * SCALE_BYTES)
