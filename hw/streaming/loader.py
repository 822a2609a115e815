"""Brings the schedule of a job from memory to the route scheduler."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.item_reader import ItemReader
from hw.bus.read_port import ReadPort
from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import PREDICTION_BITS, schedule_entry
from hw.streaming.record import SCHEDULE_BYTES, schedule_item

__all__ = ["Loader"]


class Loader(wiring.Component):
    """Reads ``count`` schedule items and hands them on as entries, in order.

    **Latency**: from ``start`` to ``bus.ar`` 2 cycles; from the beat that completes an item to
    ``o_entry`` 1, on a bus of 8 bytes 2.

    **Throughput**: an item per cycle on a bus of 16 bytes or more.

    **Numerics**: none.

    **Errors**: ``failed`` with ``done``, if a read failed or a field did not fit; the entries from
    there on are not handed on.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    start : ``In(1)``; base, count : ``In``
        Begin; address of the first item, a multiple of 64; at least 1.
    o_entry : ``Out(stream.Signature(schedule_entry(config)))``
    done, failed : ``Out(1)``
        ``done`` for one cycle, with the last item; ``failed`` means something only then.
    bus : ``Out(ReadPort)``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Loader", config)
        super().__init__({
            "start": In(1),
            "base": In(config.address_bits),
            "count": In(16),
            "o_entry": Out(stream.Signature(schedule_entry(config))),
            "done": Out(1),
            "failed": Out(1),
            "bus": Out(ReadPort(config.address_bits, config.bus_bytes)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.reader = reader = ItemReader(
            address_bits=config.address_bits, data_bytes=config.bus_bytes,
            item_bytes=SCHEDULE_BYTES)
        wiring.connect(m, reader.bus, wiring.flipped(self.bus))
        item = schedule_item()(reader.o.payload.data)
        entry = self.o_entry.payload
        is_bad, has_failed = Signal(), Signal()
        m.d.comb += [
            reader.i.payload.address.eq(self.base),
            reader.i.payload.items.eq(self.count),
            is_bad.eq(has_failed | reader.o.payload.error | Cat(
                item.chunk[config.chunk_bits:], item.route[1:],
                item.stream_ticks[PREDICTION_BITS:], item.compute_ticks[PREDICTION_BITS:]).any()),
            self.o_entry.valid.eq(reader.o.valid & ~is_bad),
            reader.o.ready.eq(self.o_entry.ready | is_bad),
            self.done.eq(reader.o.valid & reader.o.ready & reader.o.payload.last),
            self.failed.eq(is_bad),
            *(entry[name].eq(item[name]) for name in
              ("chunk", "route", "stage", "stream_ticks", "compute_ticks", "deadline")),
        ]
        with m.If(self.start):
            m.d.sync += [reader.i.valid.eq(1), has_failed.eq(0)]
        with m.Elif(reader.i.ready):
            m.d.sync += reader.i.valid.eq(0)
        with m.If(reader.o.valid & is_bad):
            m.d.sync += has_failed.eq(1)
        return m
