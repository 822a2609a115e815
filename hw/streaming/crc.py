"""CRC-32 of a stream of whole beats."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int
from hw.streaming.wire import CRC_ONES, CRC_POLYNOMIAL

__all__ = ["Crc32", "crc_register"]

CRC_BITS = 32


def crc_register(message: bytes, register: int = CRC_ONES) -> int:
    """The register of the CRC behind ``message``: its CRC-32 without the final inversion."""
    for byte in message:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (CRC_POLYNOMIAL if register & 1 else 0)
    return register


def _columns(bits: int) -> list[int]:
    """What each of ``bits`` message bits, set alone, leaves in a register that was zero."""
    columns = [CRC_POLYNOMIAL]
    while len(columns) < bits:
        columns.append((columns[-1] >> 1) ^ (CRC_POLYNOMIAL if columns[-1] & 1 else 0))
    return columns[::-1]


def _product(columns, value):
    """A matrix over GF(2), times ``value``."""
    rows = (sum((column >> row & 1) << place for place, column in enumerate(columns))
            for row in range(CRC_BITS))
    return Cat((value & row).xor() for row in rows)


class Crc32(wiring.Component):
    """CRC-32 of messages of whole beats.

    The register after a beat is the sum (modulo 2) of what the beat's bits contribute and what the
    register before contributes. The wide first sum is registered; only the second, of some 17 terms
    a bit, is in the loop.

    **Latency**: 2 cycles (`LATENCY`) from a beat to the CRC of the message up to it.

    **Throughput**: a beat per cycle, of one message after another.

    **Numerics**: ``golden.streaming.crc.crc32``.

    **Errors**: none.

    Parameters
    ----------
    beat_bytes : int
        Bytes of a beat, at least 4.

    Members
    -------
    data : ``In(8 * beat_bytes)``
        The beat; its first byte in the low bits.
    enable : ``In(1)``
        Whether there is a beat in this cycle.
    first : ``In(1)``
        Whether it is the first of a message.
    crc : ``Out(32)``
        Holds until `LATENCY` cycles after the next beat.
    """

    LATENCY = 2

    def __init__(self, *, beat_bytes):
        self._beat_bytes = check_int("Crc32 beat_bytes", beat_bytes, minimum=CRC_BITS // 8)
        super().__init__({
            "data": In(8 * beat_bytes), "enable": In(1), "first": In(1), "crc": Out(CRC_BITS)})

    @property
    def beat_bytes(self):
        return self._beat_bytes

    def elaborate(self, platform):
        m = Module()
        columns = _columns(8 * self.beat_bytes)
        contribution = Signal(CRC_BITS)
        is_beat = Signal()
        is_first = Signal()
        register = Signal(CRC_BITS)
        before = Signal(CRC_BITS)

        m.d.sync += [
            contribution.eq(_product(columns, self.data)),
            is_beat.eq(self.enable),
            is_first.eq(self.first),
        ]
        # The register is added to the first bits of a beat, so it contributes as they do.
        m.d.comb += before.eq(Mux(is_first, CRC_ONES, register))
        with m.If(is_beat):
            m.d.sync += register.eq(contribution ^ _product(columns[:CRC_BITS], before))
        m.d.comb += self.crc.eq(register ^ CRC_ONES)
        return m
