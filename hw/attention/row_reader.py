"""Reads rows of K, or of V, from memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Error, Kind, exponents, fetch_status, row_beat
from hw.attention.paging import row_place
from hw.bus.beat_queue import BeatQueue
from hw.bus.read_port import ReadPort
from hw.config import AttentionConfig
from hw.stream import Queue

__all__ = ["RowReader", "row_header", "row_request", "worst_error"]


def row_header(config: AttentionConfig) -> data.StructLayout:
    """What travels with a row: the fields of a ``row_beat`` that its beats share."""
    return data.StructLayout({
        "kind": Kind,
        "slot": config.slot_bits,
        "logits_only": 1,
        "weight": 5,
        "position": config.position_bits,
        "exponents": exponents(config),
    })


def row_request(config: AttentionConfig) -> data.StructLayout:
    """A row to read. END and rows with a fault are not read, but keep their place in the order."""
    return data.StructLayout({"place": row_place(config), "header": row_header(config)})


def worst_error(left, right):
    """The lower code of two errors that is not NONE: it does not depend on which came first."""
    both = (left != Error.NONE.value) & (right != Error.NONE.value)
    return Mux(both, Mux(left < right, left, right), left | right)


class RowReader(wiring.Component):
    """Turns row requests into bursts, and their beats into rows, in order.

    Every row is one burst. Room for the whole row is reserved before the burst is asked for, so
    ``bus.r`` is always ready; up to ``read_rows`` rows are under way.

    **Latency**: 0 cycles from ``i`` to ``bus.ar``; 2 cycles from the bus beat that completes a
    datapath beat to ``o``; 1 cycle from ``i`` to ``o`` for what is not read. The status follows the
    END beat by 1 cycle.

    **Throughput**: 1 row request and 1 bus beat per cycle.

    **Numerics**: none. The part of a row that could not be read is zero.

    **Errors**: of a query, in its status, the lowest code of WINDOW (a request with a fault), BUS
    (error response) and SHORT (burst shorter or longer than asked). The rows after it are whole.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i : ``In(stream.Signature(row_request(config)))``
        Rows to read, and END after the last of a query.
    bus : ``Out(ReadPort(address_bits, memory_bytes))``
        The memory.
    o : ``Out(stream.Signature(row_beat(config)))``
        Their beats.
    o_status : ``Out(stream.Signature(fetch_status(config)))``
        Once per query, after its END: the worst error, and the bus beats asked for.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"RowReader config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(row_request(config))),
            "bus": Out(ReadPort(config.address_bits, config.memory_bytes)),
            "o": Out(stream.Signature(row_beat(config))),
            "o_status": Out(stream.Signature(fetch_status(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    @property
    def row_beats(self):
        """Datapath beats of a full row."""
        return 2 // self.config.planes_per_beat

    def elaborate(self, platform):
        m = Module()
        config = self.config
        held = data.StructLayout({"header": row_header(config), "fault": 1})
        mark = data.StructLayout({"closes": 1, "bus_error": 1, "wrong_length": 1})
        room = config.read_rows * self.row_beats
        m.submodules.rows = rows = Queue(held, depth=config.read_rows)
        m.submodules.bursts = bursts = Queue(1, depth=config.read_rows)
        m.submodules.beats = beats = BeatQueue(config.beat_bytes * 8, depth=room)
        # What control depends on lies apart: it is read faster than a deep memory.
        m.submodules.marks = marks = Queue(mark, depth=room)
        m.submodules.status = status = Queue(fetch_status(config), depth=2)

        self._ask(m, rows, bursts)
        self._gather(m, bursts, beats, marks)
        self._deliver(m, rows, beats, marks, status)
        wiring.connect(m, status.o, wiring.flipped(self.o_status))
        return m

    def _ask(self, m, rows, bursts):
        """Issue the burst of a row as the row takes its place in the order."""
        request = self.i.payload
        is_read = Signal()
        is_coarse = Signal()
        m.d.comb += [
            is_read.eq((request.header.kind != Kind.END) & ~request.place.fault),
            is_coarse.eq(request.header.kind == Kind.COARSE),
            self.bus.ar.payload.address.eq(request.place.address),
            self.bus.ar.payload.length.eq(
                Mux(is_coarse, self.config.coarse_beats, self.config.full_beats) - 1),
            self.bus.ar.valid.eq(self.i.valid & is_read & rows.i.ready & bursts.i.ready),
            self.i.ready.eq(rows.i.ready & (~is_read | (self.bus.ar.ready & bursts.i.ready))),
            rows.i.payload.header.eq(request.header),
            rows.i.payload.fault.eq(request.place.fault),
            rows.i.valid.eq(self.i.valid & self.i.ready),
            bursts.i.payload.eq(is_coarse),
            bursts.i.valid.eq(self.bus.ar.valid & self.bus.ar.ready),
        ]

    def _gather(self, m, bursts, beats, marks):
        """Join bus beats to datapath beats. Every burst ends in one that closes it."""
        config = self.config
        ratio = config.bus_beats_per_beat
        beat = self.bus.r.payload
        index = Signal(range(config.full_beats))
        overrun = Signal()
        bus_error = Signal()
        failed = Signal()
        final = Signal()
        fills = Signal()
        gathered = Signal(data.ArrayLayout(config.memory_bytes * 8, ratio))
        word = Signal(config.memory_bytes * 8)
        mark = marks.i.payload
        m.d.comb += [
            self.bus.r.ready.eq(1),
            bursts.o.ready.eq(self.bus.r.valid & beat.last),
            final.eq(index == Mux(bursts.o.payload, config.coarse_beats, config.full_beats) - 1),
            fills.eq(index % ratio == ratio - 1),
            failed.eq(beat.response[1]),
            word.eq(Mux(failed, 0, beat.data)),
            beats.i.payload.eq(gathered),
            beats.i.payload.word_select(index % ratio, len(word)).eq(word),
            marks.i.valid.eq(beats.i.valid),
            mark.closes.eq(final | beat.last),
            mark.bus_error.eq(bus_error | failed),
            mark.wrong_length.eq(final != beat.last),
            beats.i.valid.eq(self.bus.r.valid & bursts.o.valid & ~overrun
                             & (fills | final | beat.last)),
        ]
        with m.If(self.bus.r.valid & bursts.o.valid):
            m.d.sync += [
                index.eq(index + 1),
                bus_error.eq(bus_error | failed),
                overrun.eq((overrun | final) & ~beat.last),
                gathered[index % ratio].eq(word),
            ]
            with m.If(beats.i.valid):
                m.d.sync += gathered.eq(0)
            with m.If(beat.last | final):
                m.d.sync += [index.eq(0), bus_error.eq(0)]

    def _deliver(self, m, rows, beats, marks, status):
        """Pair each row with its beats, with zeros in place of what did not come."""
        config = self.config
        header = rows.o.payload.header
        is_end = Signal()
        is_read = Signal()
        waits = Signal()
        is_first = Signal(init=1)
        cut = Signal()
        transfer = Signal()
        is_coarse = Signal()
        m.d.comb += [
            is_end.eq(header.kind == Kind.END),
            is_coarse.eq(header.kind == Kind.COARSE),
            is_read.eq(~is_end & ~rows.o.payload.fault),
            waits.eq(is_read & ~cut),
            self.o.payload.data.eq(Mux(waits, beats.o.payload, 0)),
            self.o.payload.last.eq(~is_first | is_end | is_coarse | (self.row_beats == 1)),
            self.o.valid.eq(rows.o.valid & Mux(waits, beats.o.valid, ~is_end | status.i.ready)),
            transfer.eq(self.o.valid & self.o.ready),
            beats.o.ready.eq(transfer & waits),
            marks.o.ready.eq(beats.o.ready),
            rows.o.ready.eq(transfer & self.o.payload.last),
        ]
        m.d.comb += [self.o.payload[name].eq(header[name]) for name, _ in row_header(config)]
        with m.If(transfer):
            m.d.sync += [
                is_first.eq(self.o.payload.last),
                cut.eq(~self.o.payload.last & (cut | (is_read & marks.o.payload.closes))),
            ]
        self._account(m, rows, marks, status, transfer=transfer, is_coarse=is_coarse)

    def _account(self, m, rows, marks, status, *, transfer, is_coarse):
        """Sum up a query's errors and beats; END hands them over."""
        config = self.config
        mark = marks.o.payload
        fault = rows.o.payload.fault
        error = Signal(Error)
        now = Signal(Error)
        count = Signal.like(status.i.payload.beats)
        ends = Signal()
        m.d.comb += [
            ends.eq(transfer & (self.o.payload.kind == Kind.END)),
            status.i.payload.error.eq(error),
            status.i.payload.beats.eq(count),
            status.i.valid.eq(ends),
        ]
        with m.If(fault):
            m.d.comb += now.eq(Error.WINDOW)
        with m.Elif(marks.o.ready & mark.bus_error):
            m.d.comb += now.eq(Error.BUS)
        with m.Elif(marks.o.ready & mark.wrong_length):
            m.d.comb += now.eq(Error.SHORT)
        with m.If(ends):
            m.d.sync += [error.eq(Error.NONE), count.eq(0)]
        with m.Elif(transfer):
            m.d.sync += error.eq(worst_error(error.as_value(), now.as_value()))
            with m.If(self.o.payload.last & ~fault):
                m.d.sync += count.eq(
                    count + Mux(is_coarse, config.coarse_beats, config.full_beats))
