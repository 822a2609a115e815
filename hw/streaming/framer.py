"""Takes packets apart: header, payload, and how the packet ended."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.config import StreamingConfig
from hw.stream import Queue, SkidBuffer
from hw.streaming.checks import check_config
from hw.streaming.crc import Crc32, crc_register
from hw.streaming.header import HeaderCheck, frame_head
from hw.streaming.layouts import link_beat, payload_beat
from hw.streaming.place import PacketPlace, Part, packet_beat
from hw.streaming.wire import CRC_ONES, UNIT_BYTES

__all__ = ["Framer", "packet_end"]

CRC_BYTES = 4
PAYLOAD_DEPTH = 16

# CRC-32 of any message followed by its own, and of a payload followed by a right trailer.
SEALED = CRC_ONES ^ crc_register((CRC_ONES ^ crc_register(b"")).to_bytes(CRC_BYTES, "little"))
CLOSED = CRC_ONES ^ crc_register(bytes(UNIT_BYTES - CRC_BYTES), SEALED ^ CRC_ONES)


def packet_end() -> data.StructLayout:
    """How a packet ended; ``is_closed`` (the trailer is right) counts if the others are low."""
    return data.StructLayout({"truncated": 1, "overlong": 1, "is_closed": 1})


class Framer(wiring.Component):
    """Takes packets apart as if every header were right; whoever reads the parts judges.

    Of each packet, whatever its bytes, come one head, payload beats of which exactly the last is
    marked, and one end. A packet that ends before its payload, if only by a byte, has a last
    payload beat that is marked ``cut`` and holds nothing.

    The CRC of a message followed by its own CRC is a constant, so header and trailer are checked by
    running over them; the trailer's 60 zeros change one constant into another. That they are zero
    is checked apart.

    **Latency**: 2 cycles from a link beat to ``o_payload``; 4 cycles from the header's last beat to
    ``o_head``; 3 cycles from the packet's last beat to ``o_end``. One of them is a register slice
    at the edge, so that the link's signals have the way across the chip to themselves.

    **Throughput**: a link beat per cycle while ``o_payload`` is taken as fast. After a packet that
    ends with its header, or within it, 1 cycle passes before the next one.

    **Numerics**: ``golden.streaming.wire.decode_frame``, checks 1 to 4 and 8 to 11. A beat with a
    hole, and a partial beat before the last, counts as truncated; a last beat without any byte only
    ends the packet.

    **Errors**: in ``o_head`` and ``o_end``.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(link_beat(config)))``
        The link.
    hold : ``In(1)``
        No packet may begin in this cycle, behind the register slice.
    begins : ``Out(1)``
        A packet begins in this cycle.
    o_head : ``Out(stream.Signature(frame_head(config)))``
        Must be taken at once.
    o_payload : ``Out(stream.Signature(payload_beat(config)))``
        From a queue of 16 beats, which bridges the time until the header is judged.
    o_end : ``Out(stream.Signature(packet_end()))``
        Must be taken at once.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Framer", config)
        super().__init__({
            "i": In(stream.Signature(link_beat(config))),
            "hold": In(1),
            "begins": Out(1),
            "o_head": Out(stream.Signature(frame_head(config))),
            "o_payload": Out(stream.Signature(payload_beat(config))),
            "o_end": Out(stream.Signature(packet_end())),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.edge = edge = SkidBuffer(packet_beat(self.config))
        m.submodules.place = place = PacketPlace(self.config)
        m.submodules.crc = crc = Crc32(beat_bytes=self.config.bus_bytes)
        m.submodules.check = check = HeaderCheck(self.config)
        m.submodules.payload = payload = Queue(payload_beat(self.config), depth=PAYLOAD_DEPTH)

        keep, into = self.i.payload.keep, edge.i.payload
        m.d.comb += [
            into.data.eq(self.i.payload.data),
            into.last.eq(self.i.payload.last),
            into.is_full.eq(keep.all()),
            into.is_empty.eq(~keep.any()),
            into.has_hole.eq((keep[1:] & ~keep[:-1]).any()),
            edge.i.valid.eq(self.i.valid),
            self.i.ready.eq(edge.i.ready),
        ]
        beat, take = edge.o.payload, Signal()
        is_start = (place.part == Part.HEADER) & place.is_first
        m.d.comb += [
            # A header must not be overwritten while it is being checked.
            edge.o.ready.eq(payload.i.ready & ~(is_start & (self.hold | check.settles))),
            take.eq(edge.o.valid & edge.o.ready),
            self.begins.eq(take & is_start),
            place.beat.eq(beat),
            place.take.eq(take),
            crc.data.eq(beat.data),
            crc.enable.eq(take & (place.part != Part.EXCESS)),
            crc.first.eq(place.is_first),
        ]
        self._read_header(m, take, place, check, crc)
        self._pass_payload(m, take, place, payload)
        self._end(m, take, place, crc)
        return m

    def _read_header(self, m, take, place, check, crc):
        beat = place.beat
        is_header = take & (place.part == Part.HEADER)
        header = Signal.like(check.header)
        with m.If(is_header):
            m.d.sync += header.as_value().word_select(place.index, len(beat.data)).eq(beat.data)
        m.d.comb += [
            check.header.eq(header),
            check.start.eq(is_header & (place.ends_unit | beat.last)),
            check.is_whole.eq(place.ends_unit & beat.is_full & ~place.is_damaged),
            check.is_sealed.eq(crc.crc == SEALED),
        ]
        wiring.connect(m, check.o, wiring.flipped(self.o_head))

    def _pass_payload(self, m, take, place, payload):
        """Queue what the header calls payload. A packet without any gets a beat in its place."""
        beat, is_payload = place.beat, place.part == Part.PAYLOAD
        m.d.comb += [
            payload.i.payload.data.eq(beat.data),
            payload.i.payload.last.eq(beat.last | place.ends_payload),
            payload.i.payload.cut.eq(beat.last & ~(place.ends_payload & beat.is_full)),
            payload.i.valid.eq(take & (is_payload | ((place.part == Part.HEADER) & beat.last))),
        ]
        wiring.connect(m, payload.o, wiring.flipped(self.o_payload))

    def _end(self, m, take, place, crc):
        """Sum up a packet, and wait for the CRC of its last beat."""
        beat = place.beat
        is_trailer, is_excess = place.part == Part.TRAILER, place.part == Part.EXCESS
        is_zero, is_overlong = Signal(), Signal()
        end, ends = Signal(packet_end()), Signal()
        rest = Mux(place.index == 0, beat.data[8 * CRC_BYTES:], beat.data)
        m.d.sync += ends.eq(take & beat.last)
        with m.If(take):
            m.d.sync += [
                end.truncated.eq(place.is_damaged | ~(
                    is_excess | (is_trailer & place.ends_unit & beat.is_full))),
                end.overlong.eq(is_overlong | (is_excess & ~beat.is_empty)),
                is_overlong.eq(~beat.last & (is_overlong | (is_excess & ~beat.is_empty))),
            ]
            with m.If(is_trailer):
                m.d.sync += is_zero.eq((is_zero | (place.index == 0)) & (rest == 0))
        closed = delay(m, end, 1, name="closed")
        m.d.sync += self.o_end.valid.eq(ends)
        m.d.comb += [
            self.o_end.payload.truncated.eq(closed.truncated),
            self.o_end.payload.overlong.eq(closed.overlong),
            self.o_end.payload.is_closed.eq(is_zero & (crc.crc == CLOSED)),
        ]
