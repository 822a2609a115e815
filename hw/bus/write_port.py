"""The port that a unit writes memory through."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int

__all__ = ["WritePort"]


class WritePort(wiring.Signature):
    """Bursts of writes, answered in order; ids exist only beyond the `WriteMux`.

    Whoever shares a bus must not keep it waiting. So the master keeps three promises:

    - When it offers a burst on ``aw``, the burst's beats are there, or they will come whatever the
      other ports do: the data depend on no write, and no later request, of anybody.
    - The beats of its bursts come in the order of the bursts, ``last`` with the last one of each.
    - It has room for the answer to every burst it asked for: ``b`` is always ready.

    Parameters
    ----------
    address_bits : int
        Width of a byte address.
    data_bytes : int
        Width of a beat in bytes.

    Members
    -------
    aw : ``Out(stream.Signature({"address", "length"}))``
        A burst of ``length + 1`` beats from ``address``, which must not cross 4 KiB.
    w : ``Out(stream.Signature({"data", "strobe", "last"}))``
        Its beats; bytes whose ``strobe`` is low are not written. May be offered before the burst
        is; taken after.
    b : ``In(stream.Signature({"response"}))``
        That the burst is in memory, or not; ``response`` is that of AXI.
    """

    def __init__(self, address_bits, data_bytes):
        self._address_bits = check_int("WritePort address_bits", address_bits, minimum=1)
        self._data_bytes = check_int("WritePort data_bytes", data_bytes, minimum=1)
        super().__init__({
            "aw": Out(stream.Signature(data.StructLayout({
                "address": address_bits, "length": 8}))),
            "w": Out(stream.Signature(data.StructLayout({
                "data": data_bytes * 8, "strobe": data_bytes, "last": 1}))),
            "b": In(stream.Signature(data.StructLayout({"response": 2}))),
        })

    @property
    def address_bits(self):
        return self._address_bits

    @property
    def data_bytes(self):
        return self._data_bytes
