"""Where in its packet a link beat lies."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.wire import HEADER_FIELDS, UNIT_BYTES

__all__ = ["PacketPlace", "Part", "packet_beat"]


def packet_beat(config: StreamingConfig) -> data.StructLayout:
    """A link beat with what its TKEEP comes to: all bytes there, none, or some in disorder."""
    return data.StructLayout({
        "data": 8 * config.bus_bytes, "last": 1, "is_full": 1, "is_empty": 1, "has_hole": 1})


class Part(enum.Enum, shape=2):
    """Parts of a packet, as its header has them."""

    HEADER = 0
    PAYLOAD = 1
    TRAILER = 2
    EXCESS = 3


class PacketPlace(wiring.Component):
    """Follows packets by the length in their headers, right or not.

    The outputs tell of ``beat``; ``is_damaged`` looks at it within the cycle.

    **Latency**: 1 cycle from a beat to the place of the next.

    **Throughput**: a beat per cycle.

    **Numerics**: exact, by section 1 of docs/wire_format.md. A length of 0 stands for 2**32 bytes:
    it is refused in any case, and like this no payload is empty.

    **Errors**: ``is_damaged``.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    beat : ``In(packet_beat(config))``
    take : ``In(1)``
        The beat is taken in this cycle.
    part : ``Out(Part)``
    index : ``Out(range(beats of 64 bytes))``
        Within 64 bytes.
    is_first : ``Out(1)``
        The beat is the first of the header, or of the payload.
    ends_unit, ends_payload : ``Out(1)``
        The beat is the last of 64 bytes, or of the payload.
    is_damaged : ``Out(1)``
        This beat, or an earlier one of the packet, has a hole, or is partial and not the last.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("PacketPlace", config)
        super().__init__({
            "beat": In(packet_beat(config)),
            "take": In(1),
            "part": Out(Part),
            "index": Out(range(UNIT_BYTES // config.bus_bytes)),
            "is_first": Out(1, init=1),
            "ends_unit": Out(1),
            "ends_payload": Out(1),
            "is_damaged": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        beat = self.beat
        left = Signal(32)  # payload beats, this one included
        was_damaged = Signal()
        m.d.comb += [
            self.is_damaged.eq(was_damaged | beat.has_hole | (~beat.is_full & ~beat.last)),
            self.ends_unit.eq(self.index == UNIT_BYTES // self.config.bus_bytes - 1),
            self.ends_payload.eq((self.part == Part.PAYLOAD) & (left == 1)),
        ]
        with m.If(self.take):
            m.d.sync += [
                self.index.eq(self.index + 1),
                self.is_first.eq((self.part == Part.HEADER) & self.ends_unit),
                left.eq(left - 1),
                was_damaged.eq(self.is_damaged),
            ]
            with m.Switch(self.part):
                with m.Case(Part.HEADER):
                    self._load(m, left)
                    with m.If(self.ends_unit):
                        m.d.sync += self.part.eq(Part.PAYLOAD)
                with m.Case(Part.PAYLOAD):
                    with m.If(self.ends_payload):
                        m.d.sync += [self.part.eq(Part.TRAILER), self.index.eq(0)]
                with m.Case(Part.TRAILER):
                    with m.If(self.ends_unit):
                        m.d.sync += self.part.eq(Part.EXCESS)
            with m.If(beat.last):
                m.d.sync += [
                    self.part.eq(Part.HEADER),
                    self.index.eq(0),
                    self.is_first.eq(1),
                    was_damaged.eq(0),
                ]
        return m

    def _load(self, m, left):
        """Take the length out of the header beat that holds it; a beat later it counts."""
        names = list(HEADER_FIELDS)
        offset = sum(HEADER_FIELDS[name] for name in names[:names.index("payload_bytes")])
        index, within = divmod(offset, self.config.bus_bytes)
        field = self.beat.data[8 * within:8 * (within + HEADER_FIELDS["payload_bytes"])]
        with m.If(self.index == index):
            m.d.sync += left.eq(field // self.config.bus_bytes)
        with m.Else():
            m.d.sync += left.eq(left)
