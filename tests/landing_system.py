"""The way of a chunk from its request into memory, as one unit: without scheduler and registers."""

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus import axi4
from hw.bus.read_port import ReadPort
from hw.bus.write_mux import WriteMux
from hw.streaming.landing import Landing, frame_report
from hw.streaming.layouts import link_beat, windows
from hw.streaming.page_finder import page_entry
from hw.streaming.receive import ReceivePath
from hw.streaming.requests import Requests
from hw.streaming.writer import PageWriter

__all__ = ["LandingSystem"]


class LandingSystem(wiring.Component):
    """`Requests`, `ReceivePath`, `Landing` and `PageWriter`.

    ``looked_up`` tells in the order of the packets whether a lookup was answered ``awaited``, and
    whether the request had been given up meanwhile.

    Parameters
    ----------
    config : StreamingConfig
    """

    def __init__(self, config):
        self.config = config
        requests = Requests(config).signature.members
        super().__init__({
            **{name: requests[name] for name in (
                "records", "first_id", "i_request", "i_cancel", "abort", "o_answer", "o_request",
                "busy")},
            "i_link": In(stream.Signature(link_beat(config))),
            "i_entry": In(stream.Signature(page_entry(config))),
            "windows": In(windows(config)),
            "o_report": Out(stream.Signature(frame_report())),
            "looked_up": Out(data.StructLayout({"valid": 1, "awaited": 1, "zombie": 1})),
            "bus": Out(ReadPort(config.address_bits, config.bus_bytes)),
            "m_axi": Out(axi4.WriteSignature(config.address_bits, config.bus_bytes, 1)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.requests = requests = Requests(self.config)
        m.submodules.receive = receive = ReceivePath(self.config)
        m.submodules.landing = landing = Landing(self.config)
        m.submodules.writer = writer = PageWriter(self.config)
        m.submodules.mux = mux = WriteMux(
            address_bits=self.config.address_bits, data_bytes=self.config.bus_bytes, ports=1)
        connect, flipped = wiring.connect, wiring.flipped
        for name in ("i_request", "i_cancel"):
            connect(m, flipped(getattr(self, name)), getattr(requests, name))
        for name in ("o_answer", "o_request", "bus"):
            connect(m, getattr(requests, name), flipped(getattr(self, name)))
        connect(m, flipped(self.i_link), receive.i_link)
        connect(m, flipped(self.i_entry), writer.i_entry)
        connect(m, receive.o_lookup, requests.i_lookup)
        connect(m, requests.o_expected, receive.i_expected)
        connect(m, receive.o_verdict, landing.i_verdict)
        connect(m, receive.o_stored, landing.i_stored)
        connect(m, landing.o_stored, writer.i_stored)
        connect(m, landing.o_close, writer.i_close)
        connect(m, writer.o_done, landing.i_done)
        connect(m, landing.o_report, flipped(self.o_report))
        connect(m, writer.bus, mux.port[0])
        connect(m, mux.axi, flipped(self.m_axi))
        expected = receive.i_expected
        m.d.comb += [
            requests.records.eq(self.records),
            requests.first_id.eq(self.first_id),
            requests.abort.eq(self.abort),
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
