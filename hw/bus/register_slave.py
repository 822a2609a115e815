"""AXI4-Lite slave that decodes a register map."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.bus import axil
from hw.checks import check_int

__all__ = ["RegisterSlave"]


class RegisterSlave(wiring.Component):
    """Handshakes and decoding of a block of 32-bit registers; their contents are outside.

    **Latency**: write response 1 cycle after the first in which address and data are both there,
    or, of a write that is ``slow``, 1 cycle after ``done``. Read data 2 cycles after the address.

    **Throughput**: one read and one write at a time, each per 2 cycles or 3.

    **Numerics**: none.

    **Errors**: SLVERR, and no strobe, for an address without a register or not of a word, a write
    to a read-only register or a read of a write-only one, a write of less than a word, and a write
    that is not accepted.

    Parameters
    ----------
    registers : sequence of Register
    address_bits : int
        Width of a byte address.

    Members
    -------
    bus : ``In(axil.Signature)``
    strobe : ``Out``, struct of 1 bit per register that can be written
        The register is written with ``word`` in this cycle.
    word : ``Out(32)``
    accepts : ``In``, struct like ``strobe``, all ones unless driven
        Whether the register takes ``word`` now.
    slow, done : ``In(1)``
        With a strobe: the answer waits; what it waited for has happened.
    value : ``In``, struct of 32 bits per register that can be read
    """

    def __init__(self, registers, *, address_bits):
        self._registers = tuple(registers)
        self._address_bits = check_int(
            "RegisterSlave address_bits", address_bits, minimum=3, maximum=64)
        written = data.StructLayout({r.name: 1 for r in self._registers if r.access != "ro"})
        super().__init__({
            "bus": In(axil.Signature(address_bits=address_bits, data_bytes=4)),
            "strobe": Out(written),
            "word": Out(32),
            "accepts": In(written, init={name: 1 for name, _ in written}),
            "slow": In(1),
            "done": In(1),
            "value": In(data.StructLayout(
                {r.name: 32 for r in self._registers if r.access != "wo"})),
        })

    @property
    def registers(self):
        return self._registers

    @property
    def address_bits(self):
        return self._address_bits

    def elaborate(self, platform):
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _write(self, m):
        bus, waits = self.bus, Signal()
        accept, is_good = Signal(), Signal()
        m.d.comb += [
            accept.eq(bus.aw.valid & bus.w.valid & ~bus.b.valid & ~waits),
            bus.aw.ready.eq(accept),
            bus.w.ready.eq(accept),
            self.word.eq(bus.w.payload.data),
            is_good.eq(self.strobe.as_value().any()),
        ]
        with m.If(accept & bus.w.payload.strb.all()), m.Switch(bus.aw.payload.addr):
            for register in self.registers:
                if register.access != "ro":
                    with m.Case(register.address):
                        m.d.comb += self.strobe[register.name].eq(self.accepts[register.name])
        with m.If(accept):
            m.d.sync += [
                waits.eq(is_good & self.slow),
                bus.b.valid.eq(~(is_good & self.slow)),
                bus.b.payload.resp.eq(Mux(is_good, axil.Response.OKAY, axil.Response.SLVERR)),
            ]
        with m.Elif(waits & self.done):
            m.d.sync += [waits.eq(0), bus.b.valid.eq(1)]
        with m.Elif(bus.b.ready):
            m.d.sync += bus.b.valid.eq(0)

    def _read(self, m):
        bus = self.bus
        address, reading = Signal(self.address_bits), Signal()
        m.d.comb += bus.ar.ready.eq(~reading & ~bus.r.valid)
        with m.If(bus.ar.ready):
            m.d.sync += [address.eq(bus.ar.payload.addr), reading.eq(bus.ar.valid)]
        with m.If(reading):
            m.d.sync += [
                reading.eq(0),
                bus.r.valid.eq(1),
                bus.r.payload.data.eq(0),
                bus.r.payload.resp.eq(axil.Response.SLVERR),
            ]
            with m.Switch(address):
                for register in self.registers:
                    if register.access != "wo":
                        with m.Case(register.address):
                            m.d.sync += [
                                bus.r.payload.data.eq(self.value[register.name]),
                                bus.r.payload.resp.eq(axil.Response.OKAY),
                            ]
        with m.Elif(bus.r.ready):
            m.d.sync += bus.r.valid.eq(0)
