"""The way of a chunk from its request into memory."""

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.read_port import ReadPort
from hw.bus.write_port import WritePort
from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.landing import Landing, frame_report
from hw.streaming.layouts import link_beat, route_answer, windows
from hw.streaming.page_finder import page_entry
from hw.streaming.receive import ReceivePath
from hw.streaming.requests import Requests
from hw.streaming.writer import PageWriter

__all__ = ["Arrival"]


class Arrival(wiring.Component):
    """Asks the link for chunks, takes their frames, and writes their rows: wiring of `Requests`,
    `ReceivePath`, `Landing` and `PageWriter`.

    **Latency**: theirs, one after the other.

    **Throughput**: a beat per cycle of the link or of stored rows.

    **Numerics**: ``golden.streaming.wire.decode_frame``, ``golden.streaming.writer.plan_writes``.

    **Errors**: ``o_report``, one for each packet refused and each frame not written as it should;
    ``good`` of a chunk's answer only if its last write was answered well.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    records, first_id, i_request, i_cancel, abort, o_answer, o_request, record_failed, busy :
        See `Requests`.
    i_link : ``In(stream.Signature(link_beat(config)))``
    i_entry : ``In(stream.Signature(page_entry(config)))``
        Block table.
    windows : ``In(windows(config))``
    o_report : ``Out(stream.Signature(frame_report()))``
    looked_up : ``Out``, for whoever watches
        An answer to a lookup is taken, in the order of the packets: whether it was ``awaited``, and
        whether its request had been given up meanwhile.
    read : ``Out(ReadPort)``; write : ``Out(WritePort)``
        Records; pages.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Arrival", config)
        super().__init__({
            "records": In(config.address_bits),
            "first_id": In(32),
            "i_request": In(stream.Signature(config.chunk_bits)),
            "i_cancel": In(stream.Signature(config.chunk_bits)),
            "abort": In(1),
            "o_answer": Out(stream.Signature(route_answer(config))),
            "o_request": Out(stream.Signature(32)),
            "record_failed": Out(1),
            "busy": Out(1),
            "i_link": In(stream.Signature(link_beat(config))),
            "i_entry": In(stream.Signature(page_entry(config))),
            "windows": In(windows(config)),
            "o_report": Out(stream.Signature(frame_report())),
            "looked_up": Out(data.StructLayout({"valid": 1, "awaited": 1, "zombie": 1})),
            "read": Out(ReadPort(config.address_bits, config.bus_bytes)),
            "write": Out(WritePort(config.address_bits, config.bus_bytes)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.requests = requests = Requests(self.config)
        m.submodules.receive = receive = ReceivePath(self.config)
        m.submodules.landing = landing = Landing(self.config)
        m.submodules.writer = writer = PageWriter(self.config)
        flipped = wiring.flipped
        for source, sink in (
            (flipped(self.i_request), requests.i_request),
            (flipped(self.i_cancel), requests.i_cancel),
            (requests.o_answer, flipped(self.o_answer)),
            (requests.o_request, flipped(self.o_request)),
            (requests.bus, flipped(self.read)),
            (flipped(self.i_link), receive.i_link),
            (receive.o_lookup, requests.i_lookup),
            (requests.o_expected, receive.i_expected),
            (receive.o_verdict, landing.i_verdict),
            (receive.o_stored, landing.i_stored),
            (landing.o_stored, writer.i_stored),
            (landing.o_close, writer.i_close),
            (writer.o_done, landing.i_done),
            (landing.o_report, flipped(self.o_report)),
            (flipped(self.i_entry), writer.i_entry),
            (writer.bus, flipped(self.write)),
        ):
            wiring.connect(m, source, sink)
        expected = receive.i_expected
        m.d.comb += [
            requests.records.eq(self.records),
            requests.first_id.eq(self.first_id),
            requests.abort.eq(self.abort),
            self.record_failed.eq(requests.record_failed),
            self.busy.eq(requests.busy),
            writer.windows.eq(self.windows),
            writer.i_placement.payload.eq(requests.placement),
            writer.i_placement.valid.eq(landing.place_valid),
            landing.place_ready.eq(writer.i_placement.ready),
            requests.placed_slot.eq(landing.placed_slot),
            landing.first_id.eq(self.first_id),
            landing.taken.eq(requests.taken),
            landing.taken_slot.eq(requests.taken_slot),
            landing.begun.eq(receive.begun),
            landing.begun_chunk.eq(receive.begun_index),
            landing.zombies.eq(requests.zombies),
            requests.writing.eq(landing.writing),
            requests.ended.eq(landing.ended),
            requests.ended_slot.eq(landing.ended_slot),
            requests.ended_good.eq(landing.ended_good),
            self.looked_up.valid.eq(expected.valid & expected.ready),
            self.looked_up.awaited.eq(expected.payload.awaited),
            self.looked_up.zombie.eq(requests.zombies.bit_select(requests.taken_slot, 1)),
        ]
        return m
