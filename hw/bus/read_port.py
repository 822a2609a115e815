"""The port that a unit reads memory through."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int

__all__ = ["ReadPort"]


class ReadPort(wiring.Signature):
    """Bursts of reads, answered in order; ids exist only beyond the `ReadMux`.

    The master asks only for what it has room for, so ``r`` is always ready: a port never holds up
    the bus that it shares.

    Parameters
    ----------
    address_bits : int
        Width of a byte address.
    data_bytes : int
        Width of a beat in bytes.

    Members
    -------
    ar : ``Out(stream.Signature({"address", "length"}))``
        A burst of ``length + 1`` beats from ``address``, which must not cross 4 KiB.
    r : ``In(stream.Signature({"data", "response", "last"}))``
        Its beats; ``response`` is that of AXI.
    """

    def __init__(self, address_bits, data_bytes):
        self._address_bits = check_int("ReadPort address_bits", address_bits, minimum=1)
        self._data_bytes = check_int("ReadPort data_bytes", data_bytes, minimum=1)
        super().__init__({
            "ar": Out(stream.Signature(data.StructLayout({
                "address": address_bits, "length": 8}))),
            "r": In(stream.Signature(data.StructLayout({
                "data": data_bytes * 8, "response": 2, "last": 1}))),
        })

    @property
    def address_bits(self):
        return self._address_bits

    @property
    def data_bytes(self):
        return self._data_bytes
