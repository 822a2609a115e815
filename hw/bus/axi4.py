"""AXI4, seen from the master.

Each channel is a stream whose payload has the AXI field names without the channel's prefix, so that
a member ``m_axi`` of an emitted unit has the ports ``m_axi_awvalid``, ``m_axi_awaddr`` and so on.
"""

from amaranth.hdl import Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.checks import check_int

__all__ = ["Burst", "ReadSignature", "Response", "Signature", "WriteSignature", "beat_size",
           "connect_channels"]

# Normal, non-cacheable, bufferable; unprivileged, secure, data.
CACHE = 0b0011
PROTECTION = 0b000


class Response(enum.Enum, shape=2):
    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class Burst(enum.Enum, shape=2):
    FIXED = 0
    INCR = 1
    WRAP = 2


def beat_size(data_bytes):
    """Value of ``size`` for beats as wide as the bus."""
    return exact_log2(data_bytes)


def _check_data_bytes(name, data_bytes):
    check_int(f"{name} data_bytes", data_bytes, minimum=1, maximum=128)
    if data_bytes & (data_bytes - 1):
        raise ValueError(f"{name} data_bytes must be a power of two, not {data_bytes!r}")
    return data_bytes


def _address_channel(address_bits, id_bits):
    return stream.Signature(data.StructLayout({
        "id": id_bits,
        "addr": address_bits,
        "len": 8,
        "size": 3,
        "burst": Burst,
        "cache": 4,
        "prot": 3,
        "qos": 4,
    }))


class _Axi4(wiring.Signature):
    """What the three signatures have in common: checked sizes, and the channels in a group."""

    def __init__(self, address_bits, data_bytes, id_bits, channels):
        name = f"axi4.{type(self).__name__}"
        self._address_bits = check_int(f"{name} address_bits", address_bits, minimum=1, maximum=64)
        self._data_bytes = _check_data_bytes(name, data_bytes)
        self._id_bits = check_int(f"{name} id_bits", id_bits, minimum=1, maximum=32)
        members = {
            "aw": Out(_address_channel(address_bits, id_bits)),
            "w": Out(stream.Signature(data.StructLayout({
                "data": data_bytes * 8, "strb": data_bytes, "last": 1}))),
            "b": In(stream.Signature(data.StructLayout({"id": id_bits, "resp": Response}))),
            "ar": Out(_address_channel(address_bits, id_bits)),
            "r": In(stream.Signature(data.StructLayout({
                "id": id_bits, "data": data_bytes * 8, "resp": Response, "last": 1}))),
        }
        super().__init__({channel: members[channel] for channel in channels})

    @property
    def address_bits(self):
        return self._address_bits

    @property
    def data_bytes(self):
        return self._data_bytes

    @property
    def id_bits(self):
        return self._id_bits


class Signature(_Axi4):
    """All five channels.

    Parameters
    ----------
    address_bits : int
        Width of a byte address, 1..64.
    data_bytes : int
        Width of a beat in bytes: a power of two, 1..128.
    id_bits : int
        Width of an id, 1..32.

    Members
    -------
    aw, ar : ``Out`` streams of ``id``, ``addr``, ``len`` (beats - 1), ``size``, ``burst``,
        ``cache``, ``prot``, ``qos``
    w : ``Out`` stream of ``data``, ``strb``, ``last``
    b : ``In`` stream of ``id``, ``resp``
    r : ``In`` stream of ``id``, ``data``, ``resp``, ``last``
    """

    def __init__(self, address_bits, data_bytes, id_bits):
        super().__init__(address_bits, data_bytes, id_bits, ("aw", "w", "b", "ar", "r"))


class ReadSignature(_Axi4):
    """The channels ``ar`` and ``r`` of a `Signature` with the same parameters."""

    def __init__(self, address_bits, data_bytes, id_bits):
        super().__init__(address_bits, data_bytes, id_bits, ("ar", "r"))


class WriteSignature(_Axi4):
    """The channels ``aw``, ``w`` and ``b`` of a `Signature` with the same parameters."""

    def __init__(self, address_bits, data_bytes, id_bits):
        super().__init__(address_bits, data_bytes, id_bits, ("aw", "w", "b"))


def connect_channels(m, master, port, names):
    """Connect some channels of a bus to a port of the component at hand, ids widened.

    ``master`` may have a narrower id than ``port``: it gets the low bits of what comes back.
    """
    for name in names:
        inner, outer = getattr(master, name), getattr(port, name)
        outward = name in ("ar", "aw", "w")
        source, target = (inner, outer) if outward else (outer, inner)
        m.d.comb += [target.valid.eq(source.valid), source.ready.eq(target.ready)]
        for field, _ in source.payload.shape():
            m.d.comb += Value.cast(target.payload[field]).eq(Value.cast(source.payload[field]))
