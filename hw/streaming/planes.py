"""Stored rows: two nibble planes, and the exponents of the row."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.config import EXPONENT_BITS, PLANE_BITS, StreamingConfig
from hw.stream import Queue
from hw.streaming.block_scale import beat_blocks, block_beats
from hw.streaming.checks import check_config
from hw.streaming.layouts import stored_beat
from hw.streaming.quantiser import mantissa_beat

__all__ = ["Planes"]


class Planes(wiring.Component):
    """Splits rows of mantissas into planes; makes sure that a block of zeros has exponent 0.

    A row is written while the one before is read: a double buffer in distributed RAM, of d bytes
    each half. An element beat has half a beat of each plane, so each plane is written by halves;
    rows that are planes already are written as they are.

    **Latency**: 1 cycle (`LATENCY`) from a row's last beat to its first stored beat.

    **Throughput**: a beat per cycle. The ``ready`` of the inputs come from a register.

    **Numerics**: ``golden.mxint.pack_row``, and ``golden.mxint.canonical`` for stored rows. The
    exponents of ``i`` are right already.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(mantissa_beat(config)))``
        Rows of mantissas.
    i_stored : ``In(stream.Signature(stored_beat(config)))``
        Rows in planes. Must not be valid while a row of ``i`` is under way, nor the other way
        round.
    o : ``Out(stream.Signature(stored_beat(config)))``
        Rows in the order in which they came.
    """

    LATENCY = 1

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Planes", config)
        super().__init__({
            "i": In(stream.Signature(mantissa_beat(config))),
            "i_stored": In(stream.Signature(stored_beat(config))),
            "o": Out(stream.Signature(stored_beat(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        # As many rows as the buffer has halves, so a row that may enter has one to itself.
        m.submodules.rows = rows = Queue(
            data.ArrayLayout(EXPONENT_BITS, config.blocks), depth=2)
        bank, place = Signal(), Signal(range(config.row_beats))
        takes, ends = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(rows.i.ready),
            self.i_stored.ready.eq(rows.i.ready),
            takes.eq(rows.i.ready & (self.i.valid | self.i_stored.valid)),
            ends.eq(place == config.row_beats - 1),
            rows.i.valid.eq(takes & ends),
        ]
        with m.If(takes):
            m.d.sync += [place.eq(place + 1), bank.eq(bank ^ ends)]
        self._find_exponents(m, rows.i.payload, place, takes=takes, ends=ends)

        out_bank, out_place = Signal(), Signal(range(config.row_beats))
        moves = self.o.valid & self.o.ready
        m.d.comb += [
            self.o.valid.eq(rows.o.valid),
            self.o.payload.exponents.eq(rows.o.payload),
            self.o.payload.last.eq(out_place == config.row_beats - 1),
            rows.o.ready.eq(moves & self.o.payload.last),
        ]
        with m.If(moves):
            m.d.sync += [
                out_place.eq(out_place + 1),
                out_bank.eq(out_bank ^ self.o.payload.last),
            ]
        if config.row_beats == 1:
            self._buffer_beats(m, bank, out_bank, takes=takes)
        else:
            self._buffer_planes(m, Cat(place, bank), Cat(out_place, out_bank), takes=takes)
        return m

    def _halves(self):
        """Half a beat of each plane, from a beat of mantissas."""
        return [Cat(mantissa[first:first + PLANE_BITS]
                    for mantissa in self.i.payload.mantissas) for first in (PLANE_BITS, 0)]

    def _buffer_beats(self, m, bank, out_bank, *, takes):
        """Rows of one beat, which has the planes side by side."""
        data_bits = len(self.o.payload.data)
        m.submodules.held = held = Memory(shape=data_bits, depth=2, init=[])
        write, read = held.write_port(), held.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(bank),
            write.en.eq(takes),
            write.data.eq(Mux(self.i_stored.valid, self.i_stored.payload.data,
                              Cat(self._halves()))),
            read.addr.eq(out_bank),
            self.o.payload.data.eq(read.data),
        ]

    def _buffer_planes(self, m, place, out_place, *, takes):
        """Rows of several beats: a memory for each plane. ``place``: beat, then bank."""
        stored, is_stored = self.i_stored.payload.data, self.i_stored.valid
        beat, bank, out_beat, out_bank = place[:-1], place[-1], out_place[:-1], out_place[-1]
        planes = []
        for index, half in enumerate(self._halves()):
            memory = Memory(shape=len(stored), depth=self.config.row_beats, init=[])
            m.submodules[f"plane_{index}"] = memory
            write, read = memory.write_port(granularity=len(half)), memory.read_port(domain="comb")
            enables = Mux(is_stored, (beat[-1] == index).replicate(2), Cat(~beat[0], beat[0]))
            m.d.comb += [
                write.addr.eq(Mux(is_stored, Cat(beat[:-1], bank), Cat(beat[1:], bank))),
                write.en.eq(Mux(takes, enables, 0)),
                write.data.eq(Mux(is_stored, stored, half.replicate(2))),
                read.addr.eq(Cat(out_beat[:-1], out_bank)),
            ]
            planes.append(read.data)
        m.d.comb += self.o.payload.data.eq(Mux(out_beat[-1], planes[1], planes[0]))

    def _find_exponents(self, m, exponents, place, *, takes, ends):
        """Exponents of a row, complete at its last beat."""
        config, beat = self.config, self.i.payload
        per_beat = beat_blocks(config)
        collected, nonzero = Signal.like(exponents), Signal(config.blocks)
        now = nonzero | self._nonzero(place)
        for block in range(config.blocks):
            # The blocks of the last beat need not be collected.
            from_end = block - (config.blocks - per_beat)
            own = collected[block] if from_end < 0 else beat.exponents[from_end]
            canonical = Mux(now[block], self.i_stored.payload.exponents[block], 0)
            m.d.comb += exponents[block].eq(Mux(self.i_stored.valid, canonical, own))
            is_now = place // block_beats(config) == block // per_beat
            with m.If(self.i.valid & is_now):
                m.d.sync += collected[block].eq(beat.exponents[block % per_beat])
        with m.If(takes & self.i_stored.valid):
            m.d.sync += nonzero.eq(Mux(ends, 0, now))

    def _nonzero(self, place):
        """Which blocks have an element with a bit set in this beat of a plane, or of both."""
        config, beat = self.config, self.i_stored.payload.data
        block_bytes = config.exponent_block // 2  # in a plane
        words = max(1, config.bus_bytes // block_bytes)
        beats_log2 = (max(1, block_bytes // config.bus_bytes)).bit_length() - 1
        blocks_log2 = config.blocks.bit_length() - 1
        found = []
        for word in range(words):
            block = Cat(Const(word, (words - 1).bit_length()), place)[beats_log2:][:blocks_log2]
            found.append((beat.word_select(word, len(beat) // words).any(), block))
        return Cat(Cat(some & (block == index) for some, block in found).any()
                   for index in range(config.blocks))
