"""AXI4-Lite register block of the attention unit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.contexts import ContextFault, context_write
from hw.attention.counters import COUNTER_BITS
from hw.attention.layouts import Error, context_entry
from hw.attention.paging import table_entry
from hw.attention.register_map import COUNTERS, ENTRY_FIELDS, IDENTITY, REGISTERS, VERSION
from hw.bus import axil
from hw.bus.register_slave import RegisterSlave, collect_interrupts, enter_page
from hw.config import AttentionConfig

__all__ = ["REGISTER_ADDRESS_BITS", "Registers"]

REGISTER_ADDRESS_BITS = 12
CONTEXT_INDEX_BITS = 16


class Registers(wiring.Component):
    """Register file behind an AXI4-Lite slave; the map is ``register_map.REGISTERS``.

    **Latency**: write response 1 cycle after the first in which address and data are both there;
    for ``table_page`` and ``context_enter`` 1 cycle after the entry was taken, so that
    ``context_fault`` is then that entry's. Read data 2 cycles after the address.

    **Throughput**: one read and one write at a time, each per 2 cycles or 3.

    **Numerics**: none.

    **Errors**: SLVERR, and nothing changes, for an address without a register or not of a word, a
    write to a read-only register or a read of a write-only one, a write of less than a word, and a
    block-table entry above the table or whose page number is too wide.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    bus : ``In(axil.Signature)``
    o_table : ``Out(stream)`` of ``table_entry``
    o_context : ``Out(stream)`` of ``context_write``
    context_fault : ``In(ContextFault)``
        Outcome of the latest one.
    length_index, length_valid, length : the context table's register view
    counters, counter_clear : see `Counters`
    closed, error, busy : ``In``
        A command closed in this cycle, and its error; work is in progress.
    interrupt : ``Out(1)``
        Level, high while an enabled cause is pending.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"Registers config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "bus": In(axil.Signature(address_bits=REGISTER_ADDRESS_BITS, data_bytes=4)),
            "o_table": Out(stream.Signature(table_entry(config))),
            "o_context": Out(stream.Signature(context_write(config))),
            "context_fault": In(ContextFault),
            "length_index": Out(CONTEXT_INDEX_BITS),
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
        m.submodules.slave = slave = RegisterSlave(REGISTERS, address_bits=REGISTER_ADDRESS_BITS)
        wiring.connect(m, wiring.flipped(self.bus), slave.bus)
        self._word, strobes = slave.word, slave.strobe
        stored = {r.name: Signal(32, name=r.name) for r in REGISTERS if r.access == "rw"}
        causes = Cat(self.closed, self.closed & (self.error != Error.NONE))
        pending, interrupt = collect_interrupts(m, slave, causes, stored["interrupt_enable"])
        m.d.comb += [
            # The answer to an entry waits until the entry was taken.
            slave.slow.eq(strobes.table_page | strobes.context_enter),
            slave.done.eq((self.o_table.valid & self.o_table.ready)
                          | (self.o_context.valid & self.o_context.ready)),
            self.counter_clear.eq(strobes.counter_clear & self._word[0]),
            self.interrupt.eq(interrupt),
        ]
        self._write_stored(m, stored, strobes)
        enter_page(m, slave, stored["table_index"], self.o_table, entries=self.config.table_pages)
        self._write_context(m, stored, strobes.context_enter)
        for name, value in self._readable(stored, pending).items():
            m.d.comb += slave.value[name].eq(value)
        return m

    def _write_stored(self, m, stored, strobes):
        for name, register in stored.items():
            with m.If(strobes[name]):
                m.d.sync += register.eq(self._word)

    def _write_context(self, m, stored, strobe):
        """The staged entry: nothing is written while it is offered, so it holds."""
        context, layout = self.o_context, context_entry(self.config)
        with m.If(strobe):
            m.d.sync += [context.valid.eq(1), context.payload.valid.eq(self._word[0])]
        with m.Elif(context.ready):
            m.d.sync += context.valid.eq(0)

        lost = []
        for name, is_address in ENTRY_FIELDS:
            value = stored[f"entry_{name}"]
            if is_address:
                value = Cat(value, stored[f"entry_{name}_high"])
            m.d.comb += context.payload.entry[name].eq(value)
            lost.append(value[layout[name].width:].any())
        # An index too wide must not name another context: the highest one is above any table.
        index = stored["context_index"]
        m.d.comb += [
            context.payload.truncated.eq(Cat(lost).any()),
            context.payload.index.eq(
                Mux(index[CONTEXT_INDEX_BITS:].any(), (1 << CONTEXT_INDEX_BITS) - 1, index)),
            self.length_index.eq(context.payload.index),
        ]

    def _readable(self, stored, pending):
        """What each register that can be read shows."""
        config = self.config
        sizes = {name: getattr(config, name) for name in (
            "head_dim", "code_bits", "lanes", "max_tokens", "group", "contexts")}
        major, minor = VERSION
        return {
            "id": IDENTITY,
            "version": major << 16 | minor,
            **sizes,
            "interrupt_pending": pending,
            "busy": self.busy,
            "context_fault": self.context_fault,
            "context_length": Cat(
                self.length, Const(0, 31 - config.token_bits), self.length_valid),
            **stored,
            **{name: self.counters[place] for place, (name, _) in enumerate(COUNTERS)},
        }
