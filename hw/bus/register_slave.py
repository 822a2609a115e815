"""AXI4-Lite slave that decodes a register map."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.bus import axil
from hw.checks import check_int

__all__ = ["RegisterSlave", "collect_interrupts", "enter_page"]


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


def collect_interrupts(m, slave, causes, enable):
    """The register ``interrupt_pending`` of a block, and its interrupt.

    A cause that comes while it is cleared stays pending.

    Parameters
    ----------
    m : Module
    slave : RegisterSlave
    causes : Value
        Those of this cycle, a bit each.
    enable : Value
        The register ``interrupt_enable``.

    Returns
    -------
    tuple of Signal and Value
        What is pending, and the level of the interrupt.
    """
    pending = Signal(len(causes), name="interrupt_pending")
    cleared = Mux(slave.strobe.interrupt_pending, slave.word[:len(causes)], 0)
    m.d.sync += pending.eq((pending & ~cleared) | causes)
    return pending, (pending & enable[:len(causes)]).any()


def enter_page(m, slave, index, table, *, entries):
    """The registers ``table_index`` and ``table_page``: writing the latter enters a page.

    Parameters
    ----------
    m : Module
    slave : RegisterSlave
    index : Signal
        The register ``table_index``; it is incremented.
    table : stream
        Entries of the block table, of ``index`` and ``page``.
    entries : int
        Of the table.
    """
    strobe, page = slave.strobe.table_page, table.payload.page
    m.d.comb += slave.accepts.table_page.eq((index < entries) & ~slave.word[len(page):].any())
    with m.If(strobe):
        m.d.sync += [
            table.valid.eq(1),
            table.payload.index.eq(index),
            page.eq(slave.word),
            index.eq(index + 1),
        ]
    with m.Elif(table.ready):
        m.d.sync += table.valid.eq(0)
