"""Chunks requested from the link, from the request to the answer."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.bus.item_reader import ItemReader
from hw.bus.read_port import ReadPort
from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import expected_chunk, placement, route_answer
from hw.streaming.receiver import PACKETS
from hw.streaming.record import RECORD_BYTES, chunk_record, is_record_good

__all__ = ["Requests", "slot_count"]


class _State(enum.Enum, shape=3):
    FREE = 0
    RECORD = 1    # its record is being read
    AWAITED = 2   # a frame of it would be accepted
    TAKEN = 3     # a frame of it is under way
    ENDED = 4     # the answer has not been taken


def slot_count(config: StreamingConfig) -> int:
    """Slots: those in flight, and frames under way of requests that were given up."""
    return config.outstanding + PACKETS


class Requests(wiring.Component):
    """Keeps each requested chunk in a slot until the scheduler has the answer.

    A request reads the chunk's record, goes out as ``o_request``, and is awaited from then on. The
    next is taken when that one has gone out, so they go out in their order. The receiver's lookup
    of an awaited chunk takes it, so that a second frame of the same chunk is refused. ``ended``
    says what came of the frame.

    A request that is *cancelled* has no answer. Its frame, if one is under way, keeps the slot, as
    a zombie, until ``ended``. A cancel is taken when no write of the chunk is outstanding or to
    come.

    **Latency**: from a request to ``bus.ar`` 2 cycles; from the record to ``o_request`` 2; a lookup
    is answered after 3.

    **Throughput**: one request after the other; a lookup per 4 cycles.

    **Numerics**: none.

    **Errors**: a record that cannot be read or is no good ends the request: ``good`` low, and
    ``record_failed`` high for a cycle. See `is_record_good`.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    records, first_id : ``In``
        Address of the record of chunk 0, a multiple of 64; frame id of chunk 0.
    i_request : ``In(stream)`` of chunk index
    i_cancel : ``In(stream)`` of chunk index
    abort : ``In(1)``
        Cancel all.
    o_answer : ``Out(stream.Signature(route_answer(config)))``
        May be withdrawn while a cancel or an abort is offered.
    o_request : ``Out(stream.Signature(32))``
        Frame id of a chunk that the link is to bring.
    i_lookup : ``In(stream.Signature(32))``
    o_expected : ``Out(stream.Signature(expected_chunk(config)))``
        To and from the receiver.
    taken, taken_slot : ``Out``
        The receiver takes an answer ``awaited``, from this slot.
    zombies : ``Out``, a bit per slot
    placed_slot : ``In``; placement : ``Out(placement(config))``
        Where the rows of the chunk in a slot go.
    writing : ``In``, a bit per slot
        A write of the slot's chunk is outstanding or to come.
    ended, ended_slot, ended_good : ``In``
        The frame of a slot is through.
    record_failed : ``Out(1)``
    busy : ``Out(1)``
        A request is in progress, or a row is being written.
    bus : ``Out(ReadPort)``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Requests", config)
        slots = slot_count(config)
        super().__init__({
            "records": In(config.address_bits),
            "first_id": In(32),
            "i_request": In(stream.Signature(config.chunk_bits)),
            "i_cancel": In(stream.Signature(config.chunk_bits)),
            "abort": In(1),
            "o_answer": Out(stream.Signature(route_answer(config))),
            "o_request": Out(stream.Signature(32)),
            "i_lookup": In(stream.Signature(32)),
            "o_expected": Out(stream.Signature(expected_chunk(config))),
            "taken": Out(1),
            "taken_slot": Out(range(slots)),
            "zombies": Out(slots),
            "placed_slot": In(range(slots)),
            "placement": Out(placement(config)),
            "writing": In(slots),
            "ended": In(1),
            "ended_slot": In(range(slots)),
            "ended_good": In(1),
            "record_failed": Out(1),
            "busy": Out(1),
            "bus": Out(ReadPort(config.address_bits, config.bus_bytes)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        count = slot_count(self.config)
        self._slots = range(count)
        self._state = [Signal(_State, name=f"state_{s}") for s in self._slots]
        self._chunk = [Signal(self.config.chunk_bits, name=f"chunk_{s}") for s in self._slots]
        self._good = Signal(count)
        self._came, self._hit = Signal(count), Signal(count)
        m.submodules.records = self._memory = Memory(
            shape=chunk_record(), depth=count, init=[])
        m.d.comb += self.busy.eq(
            (Cat(state != _State.FREE for state in self._state) & ~self.zombies).any()
            | self.writing.any())
        self._read_records(m)
        self._look_up(m)
        self._place(m)
        self._answer(m)
        # Last, as it outranks what else happens to a slot in the cycle.
        self._cancel(m)
        return m

    def _first(self, m, name, wanted):
        """Number of the first slot for which ``wanted`` holds, and whether there is one."""
        slot = Signal(range(len(self._slots)), name=f"{name}_slot")
        found = Signal(name=f"{name}_found")
        m.d.comb += found.eq(Cat(wanted).any())
        for number in reversed(self._slots):
            with m.If(wanted[number]):
                m.d.comb += slot.eq(number)
        return slot, found

    def _read_records(self, m):
        """A request takes a free slot, its record is read, and it goes out: one at a time."""
        config = self.config
        m.submodules.reader = reader = ItemReader(
            address_bits=config.address_bits, data_bytes=config.bus_bytes, item_bytes=RECORD_BYTES)
        wiring.connect(m, reader.bus, wiring.flipped(self.bus))
        free, found = self._first(m, "free", [s == _State.FREE for s in self._state])
        slot, chunk = Signal.like(free), Signal(config.chunk_bits)
        reading = Signal()
        write = self._memory.write_port()
        record = chunk_record()(reader.o.payload.data)
        came, is_good = Signal(), Signal()
        m.d.comb += [
            self.i_request.ready.eq(found & ~reading & ~self.o_request.valid & ~self.abort),
            reader.i.payload.address.eq(self.records + (chunk << (RECORD_BYTES.bit_length() - 1))),
            reader.i.payload.items.eq(1),
            reader.o.ready.eq(1),
            write.addr.eq(slot),
            write.data.eq(record),
            write.en.eq(reader.o.valid),
            self.record_failed.eq(came & ~is_good),
        ]
        with m.If(self.i_request.valid & self.i_request.ready):
            m.d.sync += [
                reading.eq(1),
                reader.i.valid.eq(1),
                slot.eq(free),
                chunk.eq(self.i_request.payload),
            ]
        with m.If(reader.i.valid & reader.i.ready):
            m.d.sync += reader.i.valid.eq(0)
        m.d.sync += [
            came.eq(reader.o.valid),
            is_good.eq(is_record_good(config, record) & ~reader.o.payload.error),
        ]
        with m.If(came):
            m.d.sync += [
                reading.eq(0),
                self.o_request.valid.eq(is_good & ~self.zombies.bit_select(slot, 1)),
                self.o_request.payload.eq(self.first_id + chunk),
            ]
        with m.Elif(self.o_request.ready):
            m.d.sync += self.o_request.valid.eq(0)
        for number in self._slots:
            with m.If(self.i_request.valid & self.i_request.ready & (free == number)):
                m.d.sync += [
                    self._state[number].eq(_State.RECORD),
                    self._chunk[number].eq(self.i_request.payload),
                    self.zombies[number].eq(0),
                ]
            m.d.comb += self._came[number].eq(came & (slot == number))
            with m.If(self._came[number]):
                m.d.sync += [
                    self._state[number].eq(Mux(
                        self.zombies[number], _State.FREE,
                        Mux(is_good, _State.AWAITED, _State.ENDED))),
                    self._good[number].eq(0),
                ]

    def _look_up(self, m):
        """Subtract, compare, read the record: one cycle each."""
        config = self.config
        index = Signal(32)
        subtracted = Signal()
        matches = Cat((state == _State.AWAITED) & (chunk == index[:config.chunk_bits])
                      for state, chunk in zip(self._state, self._chunk, strict=True))
        slot, found = self._first(m, "match", matches)
        compared, hit, is_awaited = Signal(), Signal(), Signal()
        looked_up = Signal.like(slot)
        read = self._memory.read_port(domain="comb")
        expected, record = self.o_expected.payload, read.data
        m.d.comb += [
            self.i_lookup.ready.eq(~subtracted & ~compared & ~self.o_expected.valid),
            read.addr.eq(looked_up),
            hit.eq(subtracted & found & ~index[config.chunk_bits:].any()),
            self.taken.eq(self.o_expected.valid & self.o_expected.ready & expected.awaited),
            self.taken_slot.eq(looked_up),
        ]
        m.d.sync += [
            subtracted.eq(self.i_lookup.valid & self.i_lookup.ready),
            compared.eq(subtracted),
        ]
        with m.If(self.i_lookup.valid & self.i_lookup.ready):
            m.d.sync += index.eq(self.i_lookup.payload - self.first_id)
        with m.If(subtracted):
            m.d.sync += [looked_up.eq(slot), is_awaited.eq(hit)]
        for number in self._slots:
            m.d.comb += self._hit[number].eq(hit & (slot == number))
            with m.If(self._hit[number]):
                m.d.sync += self._state[number].eq(_State.TAKEN)
        with m.If(compared):
            m.d.sync += [
                self.o_expected.valid.eq(1),
                expected.awaited.eq(is_awaited),
                expected.index.eq(index),
                expected.layer.eq(record.layer),
                expected.kv_head.eq(record.kv_head),
                expected.token_block.eq(record.token_block),
                expected.tokens.eq(record.tokens),
            ]
        with m.Elif(self.o_expected.ready):
            m.d.sync += self.o_expected.valid.eq(0)

    def _place(self, m):
        read = self._memory.read_port(domain="comb")
        m.d.comb += [read.addr.eq(self.placed_slot),
                     self.placement.has_exponents.eq(read.data.flags[0])]
        for name in ("tokens", "table_index", "key_base", "value_base", "exponent_base",
                     "page_stride", "row_stride", "exponent_stride", "window_mask"):
            m.d.comb += self.placement[name].eq(read.data[name])

    def _answer(self, m):
        for number in self._slots:
            with m.If(self.ended & (self.ended_slot == number)):
                m.d.sync += [
                    self._state[number].eq(
                        Mux(self.zombies[number], _State.FREE, _State.ENDED)),
                    self._good[number].eq(self.ended_good),
                ]
        slot, found = self._first(m, "ended", [state == _State.ENDED for state in self._state])
        # Kept while it is offered, even if a slot before it ends meanwhile.
        offered, kept = Signal.like(slot), Signal()
        chosen = Signal.like(slot)
        m.d.comb += [
            chosen.eq(Mux(kept, offered, slot)),
            self.o_answer.valid.eq(found & ~self.i_cancel.valid & ~self.abort),
            self.o_answer.payload.chunk.eq(Array(self._chunk)[chosen]),
            self.o_answer.payload.good.eq(self._good.bit_select(chosen, 1)),
        ]
        m.d.sync += [kept.eq(self.o_answer.valid & ~self.o_answer.ready), offered.eq(chosen)]
        for number in self._slots:
            with m.If(self.o_answer.valid & self.o_answer.ready & (chosen == number)):
                m.d.sync += self._state[number].eq(_State.FREE)

    def _cancel(self, m):
        """Give up the request of a chunk, or all; the slot is free when no frame is under way."""
        waits, target = Signal(), Signal(len(self._slots))
        matches = Signal(len(self._slots))
        m.d.comb += matches.eq(Cat(
            (state != _State.FREE) & ~zombie & (self.abort | (chunk == self.i_cancel.payload))
            for state, zombie, chunk in zip(
                self._state, self.zombies, self._chunk, strict=True)))
        m.d.comb += self.i_cancel.ready.eq(waits & ~(target & self.writing).any())
        with m.If(self.i_cancel.valid & ~waits):
            m.d.sync += [waits.eq(1), target.eq(matches)]
        with m.If(self.i_cancel.ready):
            m.d.sync += waits.eq(0)
        for number in self._slots:
            state = self._state[number]
            with m.If(matches[number] & ((self.i_cancel.valid & ~waits) | self.abort)):
                m.d.sync += self.zombies[number].eq(1)
                is_over = self._came[number] | (self.ended & (self.ended_slot == number))
                with m.If(((state == _State.AWAITED) & ~self._hit[number])
                          | (state == _State.ENDED) | is_over):
                    m.d.sync += state.eq(_State.FREE)
