"""Gives bursts their data."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.bus.write_port import WritePort
from hw.config import EXPONENT_BITS, PAGE_TOKENS, StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.layouts import stored_beat
from hw.streaming.row_plan import LENGTH_BITS, planned_burst

__all__ = ["BurstWriter"]

PAGE_ROWS = 2 * PAGE_TOKENS


class BurstWriter(wiring.Component):
    """Writes rows as they come, and their exponents when a page's rows are through.

    A burst is asked for together with its first beat, so it depends on nobody but the source of
    rows: whoever begins a row ends it, whatever other ports of the bus do.

    **Latency**: 1 cycle from a row's first beat to ``bus.aw`` and ``bus.w``.

    **Throughput**: a beat of a row, or of exponents, per cycle, without a bubble between bursts.

    **Numerics**: ``golden.streaming.writer.plan_writes``.

    **Errors**: the data of a burst that is not allowed are dropped: ``is_refused``.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_burst : ``In(stream.Signature(planned_burst(config)))``
        Bursts, in the order of their data.
    i_stored : ``In(stream.Signature(stored_beat(config)))``
        Rows.
    has_credit : ``In(1)``
        Another burst may be asked for.
    close : ``In(1)``
        The chunk ends; what follows is the next one's. Not within a row.
    bus : ``Out(WritePort(address_bits, bus_bytes))``
        The memory; ``b`` is not looked at.
    issues : ``Out(1)``
        A burst is asked for in this cycle.
    is_between : ``Out(1)``
        No exponents are due.
    is_complete : ``Out(1)``
        All of the chunk is written or dropped.
    is_refused : ``Out(1)``
        Something of the chunk was dropped.
    beats : ``Out(32)``
        Beats of the chunk written so far.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("BurstWriter", config)
        super().__init__({
            "i_burst": In(stream.Signature(planned_burst(config))),
            "i_stored": In(stream.Signature(stored_beat(config))),
            "has_credit": In(1),
            "close": In(1),
            "bus": Out(WritePort(config.address_bits, config.bus_bytes)),
            "issues": Out(1),
            "is_between": Out(1, init=1),
            "is_complete": Out(1),
            "is_refused": Out(1),
            "beats": Out(32),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.requests = requests = Queue(self.bus.aw.payload.shape(), depth=2)
        # Data wait two cycles for their request to be granted.
        m.submodules.beats = beats = Queue(self.bus.w.payload.shape(), depth=4)
        wiring.connect(m, requests.o, wiring.flipped(self.bus.aw))
        wiring.connect(m, beats.o, wiring.flipped(self.bus.w))

        burst, index = self.i_burst.payload, Signal(LENGTH_BITS)
        is_first, is_last, may_move, moves = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_first.eq(index == 0),
            is_last.eq(index == burst.length),
            may_move.eq(self.i_burst.valid & ~self.is_complete & (~burst.allowed | (
                beats.i.ready & (~is_first | (requests.i.ready & self.has_credit))))),
            moves.eq(may_move & (burst.is_exponents | self.i_stored.valid)),
            self.i_stored.ready.eq(may_move & ~burst.is_exponents),
            self.i_burst.ready.eq(moves & is_last),
            self.issues.eq(moves & burst.allowed & is_first),
            requests.i.valid.eq(self.issues),
            requests.i.payload.address.eq(burst.address),
            requests.i.payload.length.eq(burst.length),
            beats.i.valid.eq(moves & burst.allowed),
            beats.i.payload.last.eq(is_last),
            self.bus.b.ready.eq(1),
        ]
        with m.If(moves):
            m.d.sync += index.eq(Mux(is_last, 0, index + 1))
        exponents, strobe = self._collect(m, moves=moves & burst.is_exponents)
        m.d.comb += [
            beats.i.payload.data.eq(
                Mux(burst.is_exponents, exponents, self.i_stored.payload.data)),
            beats.i.payload.strobe.eq(Mux(burst.is_exponents, strobe, ~0)),
        ]
        self._account(m, moves=moves, ends=moves & is_last)
        return m

    def _collect(self, m, *, moves):
        """Keep the exponents of a page's rows; the next beat of them, and which bytes to write."""
        config = self.config
        entry_bits = EXPONENT_BITS * config.blocks
        per_beat = min(PAGE_ROWS, config.bus_bytes // config.blocks)
        words = PAGE_ROWS // per_beat
        m.submodules.exponents = memory = Memory(
            shape=entry_bits * per_beat, depth=max(2, words), init=[])
        write, read = memory.write_port(granularity=entry_bits), memory.read_port(domain="comb")
        row, word = Signal(range(PAGE_ROWS)), Signal(range(words))
        takes = self.i_stored.valid & self.i_stored.ready
        m.d.comb += [
            write.addr.eq(row // per_beat),
            write.data.eq(self.i_stored.payload.exponents.as_value().replicate(per_beat)),
            read.addr.eq(word),
        ]
        with m.If(takes):
            m.d.comb += write.en.eq(1 << (row % per_beat))
        with m.If(self.close):
            m.d.sync += [row.eq(0), word.eq(0)]
        with m.Elif(takes):
            m.d.sync += row.eq(row + self.i_stored.payload.last)
        with m.Elif(moves):
            m.d.sync += word.eq(word + 1)

        present = Cat(1, self.i_burst.payload.slots_less_one)  # rows, less one
        wanted = Cat((word * per_beat + place <= present).replicate(config.blocks)
                     for place in range(per_beat))
        return read.data, wanted

    def _account(self, m, *, moves, ends):
        """What there is to tell of the chunk."""
        burst = self.i_burst.payload
        with m.If(self.close):
            m.d.sync += [
                self.is_complete.eq(0), self.is_refused.eq(0), self.beats.eq(0)]
        with m.Elif(moves):
            m.d.sync += [
                self.is_complete.eq(ends & burst.last),
                self.is_refused.eq(self.is_refused | ~burst.allowed),
                self.beats.eq(self.beats + burst.allowed),
            ]
        with m.If(ends):
            m.d.sync += self.is_between.eq(~burst.exponents_follow)
