"""AXI4-Lite register block of the attention unit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.contexts import ContextFault, context_write
from hw.attention.counters import COUNTER_BITS
from hw.attention.layouts import Error, context_entry
from hw.attention.register_map import COUNTERS, ENTRY_FIELDS, REGISTERS, address_of
from hw.bus import axil
from hw.config import AttentionConfig

__all__ = ["Registers", "REGISTER_ADDRESS_BITS"]

REGISTER_ADDRESS_BITS = 12
VERSION = (1, 0)
_OKAY, _SLVERR = 0, 2


class Registers(wiring.Component):
    """Register file behind an AXI4-Lite slave; the map is ``register_map.REGISTERS``.

    **Latency**: write response 1 cycle after address and data are both there (later when an entry
    has to wait for its table); read data 3 cycles after the address.

    **Throughput**: one access per direction at a time.

    **Errors**: SLVERR for an address without a register, a write to a read-only register, a write that
    is not of a whole word, or a block-table entry above the table; nothing changes then.

    Members
    -------
    bus : AXI4-Lite slave
    o_table : stream of {index, page}: block-table entries
    o_context : stream of ``context_write``
    context_fault : outcome of the latest one
    length_index, length_valid, length : the context table's register view
    counters, counter_clear : see ``Counters``
    closed, error, busy : from the results side
    interrupt : level, high while an enabled cause is pending
    """

    def __init__(self, config: AttentionConfig):
        self._config = config
        super().__init__({
            "bus": In(axil.Signature(address_bits=REGISTER_ADDRESS_BITS, data_bytes=4)),
            "o_table": Out(stream.Signature(
                data.StructLayout({"index": config.table_bits, "page": 24}))),
            "o_context": Out(stream.Signature(context_write(config))),
            "context_fault": In(ContextFault),
            "length_index": Out(16),
            "length_valid": In(1),
            "length": In(config.token_bits),
            "counters": In(data.ArrayLayout(COUNTER_BITS, len(COUNTERS))),
            "counter_clear": Out(1),
            "closed": In(1),
            "error": In(Error),
            "busy": In(1),
            "interrupt": Out(1),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        stored = {r.name: Signal(32, name=r.name) for r in REGISTERS if r.access == "rw"}
        pending = Signal(2)
        self._write_side(m, stored, pending)
        self._read_side(m, stored, pending)
        m.d.comb += [
            self.interrupt.eq((pending & stored["interrupt_enable"][:2]).any()),
            self.length_index.eq(stored["context_index"]),
        ]
        return m

    def _write_side(self, m, stored, pending):
        bus, table, context = self.bus, self.o_table, self.o_context
        word = bus.w.payload.data
        address = bus.aw.payload.addr
        write = Signal()
        clear = Signal(2)
        good = Signal()
        m.d.comb += [
            write.eq(bus.aw.valid & bus.w.valid & ~bus.b.valid & ~table.valid & ~context.valid),
            bus.aw.ready.eq(write),
            bus.w.ready.eq(write),
        ]
        with m.If(bus.b.ready):
            m.d.sync += bus.b.valid.eq(0)
        with m.If(write):
            m.d.sync += [bus.b.valid.eq(1), bus.b.payload.resp.eq(Mux(good, _OKAY, _SLVERR))]

        for stream_port in (table, context):
            with m.If(stream_port.ready):
                m.d.sync += stream_port.valid.eq(0)
        writable = Signal()
        m.d.comb += good.eq(writable & bus.w.payload.strb.all() & (address[:2] == 0))
        m.d.comb += self.counter_clear.eq(
            write & good & (address == address_of("counter_clear")) & word[0])
        with m.Switch(address[2:]):
            for register in REGISTERS:
                if register.access == "ro":
                    continue
                with m.Case(register.address >> 2):
                    fits = Const(1)
                    if register.name == "table_page":
                        fits = stored["table_index"] < self.config.table_pages
                    m.d.comb += writable.eq(fits)
                    with m.If(write & good):
                        if register.access == "rw":
                            m.d.sync += stored[register.name].eq(word)
                        elif register.name == "interrupt_pending":
                            m.d.comb += clear.eq(word)
                        elif register.name == "table_page":
                            m.d.sync += [
                                table.valid.eq(1),
                                table.payload.index.eq(stored["table_index"]),
                                table.payload.page.eq(word),
                                stored["table_index"].eq(stored["table_index"] + 1),
                            ]
                        elif register.name == "context_enter":
                            m.d.sync += [context.valid.eq(1), context.payload.valid.eq(word[0])]
        m.d.sync += pending.eq(
            (pending & ~clear) | Cat(self.closed, self.closed & (self.error != Error.NONE)))

        m.d.comb += context.payload.index.eq(stored["context_index"])
        layout = context_entry(self.config)
        for name, is_address in ENTRY_FIELDS:
            value = stored[f"entry_{name}"]
            if is_address:
                value = Cat(value, stored[f"entry_{name}_high"])
            # A value too large for its field must fail the entry's checks, not lose its top bits.
            width = layout[name].width
            m.d.comb += context.payload.entry[name].eq(
                Mux((value >> width).any(), Const(-1, width), value))

    def _read_side(self, m, stored, pending):
        bus, config = self.bus, self.config
        values = {
            "id": Const(0x4B565341, 32),
            "version": Const(VERSION[0] << 16 | VERSION[1], 32),
            "head_dim": Const(config.head_dim, 32),
            "code_bits": Const(config.code_bits, 32),
            "lanes": Const(config.lanes, 32),
            "max_tokens": Const(config.max_tokens, 32),
            "group": Const(config.group, 32),
            "contexts": Const(config.contexts, 32),
            "interrupt_pending": pending,
            "busy": self.busy,
            "context_fault": self.context_fault.as_value(),
            "context_length": Cat(self.length, Const(0, 31 - len(self.length)), self.length_valid),
        }
        values.update(stored)
        values.update({name: self.counters[i] for i, (name, _) in enumerate(COUNTERS)})
        readable = [r for r in REGISTERS if r.access != "wo"]
        address = Signal(REGISTER_ADDRESS_BITS)
        stage = Signal(2)
        m.d.comb += bus.ar.ready.eq((stage == 0) & ~bus.r.valid)
        m.d.sync += stage.eq(Cat(bus.ar.valid & bus.ar.ready, stage[0]))
        with m.If(bus.ar.valid & bus.ar.ready):
            m.d.sync += address.eq(bus.ar.payload.addr)
        with m.If(bus.r.ready):
            m.d.sync += bus.r.valid.eq(0)
        with m.If(stage[1]):
            m.d.sync += [
                bus.r.valid.eq(1),
                bus.r.payload.data.eq(0),
                bus.r.payload.resp.eq(_SLVERR),
            ]
            with m.Switch(address):
                for register in readable:
                    with m.Case(register.address):
                        m.d.sync += [
                            bus.r.payload.data.eq(values[register.name]),
                            bus.r.payload.resp.eq(_OKAY),
                        ]
