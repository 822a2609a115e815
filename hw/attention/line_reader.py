"""Bursts of a run of code lines."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Error
from hw.attention.retrieval_layouts import Strobe, check_config, code_line, line_request
from hw.bus.read_port import ReadPort

__all__ = ["LineReader"]

BURST_BYTES = 4096      # no burst crosses a multiple of this
BURST_BEATS = 256
BURSTS_OPEN = 4         # bursts asked for and not answered: rows of other queries want the bus too


class LineReader(wiring.Component):
    """Reads a run of code lines as bursts, and gathers their beats.

    **Latency**: 2 cycles from ``i`` to the first burst, 1 cycle from a line's last beat to ``o``.

    **Throughput**: one beat per cycle; up to 4 bursts are open.

    **Numerics**: none.

    **Errors**: an error response is noted (BUS) and the run goes on; a burst whose ``last`` is not
    where it should be (SHORT) ends it: when all bursts asked for have ended, one more line, without
    meaning, closes the run. The first error is told with the last line.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(Strobe(line_request(config)))``
        Lines to read; only after the last line of the request before.
    bus : ``Out(ReadPort(address_bits, memory_bytes))``
    o : ``Out(Strobe(StructLayout({"data", "last", "error", "beats"})))``
        ``data`` is a line as it lies in memory; the others are those of `code_line`.
    """

    def __init__(self, config):
        self._config = check_config("LineReader", config)
        line = code_line(config)
        super().__init__({
            "i": In(Strobe(line_request(config))),
            "bus": Out(ReadPort(config.address_bits, config.memory_bytes)),
            "o": Out(Strobe(data.StructLayout({
                "data": config.code_line_bytes * 8,
                "last": 1, "error": Error, "beats": line["beats"].shape}))),
        })

    @property
    def config(self):
        return self._config

    @property
    def burst_beats(self):
        """Beats of a whole burst; bursts end at multiples of as many beats."""
        return min(BURST_BYTES // self.config.memory_bytes, BURST_BEATS)

    @property
    def beats_bits(self):
        """Width of a number of beats of a whole context."""
        return (self.config.max_lines * self.config.code_line_beats).bit_length()

    def elaborate(self, platform):
        m = Module()
        failed = Signal()
        open_bursts = Signal(range(BURSTS_OPEN + 1))
        asked = self._build_ask(m, failed, open_bursts)
        beat = self.bus.r.valid
        last = self.bus.r.payload.last
        m.d.comb += self.bus.r.ready.eq(1)
        m.d.sync += open_bursts.eq(open_bursts + asked - (beat & last))
        self._build_gather(m, failed, open_bursts)
        return m

    def _build_ask(self, m, failed, open_bursts):
        """Ask for the run burst by burst; return a strobe for each."""
        ar = self.bus.ar
        beat_bits = (self.config.memory_bytes - 1).bit_length()
        place_bits = (self.burst_beats - 1).bit_length()
        address = Signal(self.config.address_bits - beat_bits)  # in beats
        left = Signal(self.beats_bits)
        to_boundary = self.burst_beats - address[:place_bits]
        beats = Mux(left < to_boundary, left, to_boundary)[:place_bits + 1]
        asked = Signal()
        m.d.comb += asked.eq((left != 0) & ~failed & (open_bursts != BURSTS_OPEN)
                             & (~ar.valid | ar.ready))
        with m.If(ar.ready):
            m.d.sync += ar.valid.eq(0)
        with m.If(self.i.valid):
            m.d.sync += [
                address.eq(self.i.payload.address >> beat_bits),
                left.eq(self._total_beats()),
            ]
        with m.Elif(asked):
            m.d.sync += [
                ar.valid.eq(1),
                ar.payload.address.eq(address << beat_bits),
                ar.payload.length.eq(beats - 1),
                address.eq(address + beats),
                left.eq(left - beats),
            ]
        with m.Elif(failed):
            m.d.sync += left.eq(0)
        return asked

    def _total_beats(self):
        """Beats of the run that is requested."""
        beats = self.config.code_line_beats
        return self.i.payload.last_line * beats + beats

    def _build_gather(self, m, failed, open_bursts):
        config = self.config
        r = self.bus.r
        out = self.o.payload
        place_bits = (self.burst_beats - 1).bit_length()
        place = Signal(place_bits)              # of the next beat, from a burst boundary
        left = Signal(self.beats_bits)
        index = Signal(range(config.code_line_beats))
        line_ends = index == config.code_line_beats - 1
        misplaced = r.payload.last != ((place == self.burst_beats - 1) | (left == 1))
        short = r.valid & ~failed & misplaced
        drained = failed & (open_bursts == 0)   # nothing asked for is still to come

        m.d.sync += [
            self.o.valid.eq((r.valid & ~failed & ~misplaced & line_ends) | drained),
            out.last.eq((left == 1) | drained),
        ]
        with m.If(r.valid):
            m.d.sync += [
                out.data.word_select(index, config.memory_bytes * 8).eq(r.payload.data),
                out.beats.eq(out.beats + 1),
                place.eq(place + 1),
                left.eq(left - 1),
                index.eq(Mux(line_ends, 0, index + 1)),
            ]
            with m.If(out.error == Error.NONE):
                with m.If(r.payload.response[1]):
                    m.d.sync += out.error.eq(Error.BUS)
                with m.Elif(short):
                    m.d.sync += out.error.eq(Error.SHORT)
        with m.If(short):
            m.d.sync += failed.eq(1)
        with m.Elif(drained):
            m.d.sync += failed.eq(0)
        with m.If(self.i.valid):
            beat_bits = (config.memory_bytes - 1).bit_length()
            m.d.sync += [
                place.eq(self.i.payload.address >> beat_bits),
                left.eq(self._total_beats()),
                index.eq(0),
                out.error.eq(Error.NONE),
                out.beats.eq(0),
            ]
