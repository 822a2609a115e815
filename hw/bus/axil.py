"""AXI4-Lite, seen from the master. Field names as in `hw.bus.axi4`."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.axi4 import Response
from hw.checks import check_int

__all__ = ["Response", "Signature"]


class Signature(wiring.Signature):
    """All five channels of AXI4-Lite.

    Parameters
    ----------
    address_bits : int
        Width of a byte address, 1..64.
    data_bytes : int
        Width of a register in bytes: 4 or 8.

    Members
    -------
    aw, ar : ``Out`` streams of ``addr``, ``prot``
    w : ``Out`` stream of ``data``, ``strb``
    b : ``In`` stream of ``resp``
    r : ``In`` stream of ``data``, ``resp``
    """

    def __init__(self, address_bits, data_bytes):
        self._address_bits = check_int(
            "axil.Signature address_bits", address_bits, minimum=1, maximum=64)
        if check_int("axil.Signature data_bytes", data_bytes) not in (4, 8):
            raise ValueError(f"axil.Signature data_bytes must be 4 or 8, not {data_bytes!r}")
        self._data_bytes = data_bytes
        address = data.StructLayout({"addr": address_bits, "prot": 3})
        super().__init__({
            "aw": Out(stream.Signature(address)),
            "w": Out(stream.Signature(data.StructLayout({
                "data": data_bytes * 8, "strb": data_bytes}))),
            "b": In(stream.Signature(data.StructLayout({"resp": Response}))),
            "ar": Out(stream.Signature(address)),
            "r": In(stream.Signature(data.StructLayout({
                "data": data_bytes * 8, "resp": Response}))),
        })

    @property
    def address_bits(self):
        return self._address_bits

    @property
    def data_bytes(self):
        return self._data_bytes
