"""Context table: where each context's tokens, codes and rows lie, and how long it is."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import context_entry
from hw.config import PAGE_TOKENS, AttentionConfig
from hw.sram import Sram

__all__ = ["ContextFault", "ContextTable", "context_write", "context_view"]


class ContextFault(enum.Enum, shape=3):
    """Why a context entry was refused."""

    NONE = 0
    INDEX = 1      # index above the table
    ALIGNMENT = 2  # a base or stride is not a multiple of row_bytes (code_address: of a beat)
    CAPACITY = 3   # capacity 0 or above max_tokens, or length above capacity
    CODES = 4      # code region outside the code memory, or not starting on a page
    WEIGHTS = 5    # weight set above the encoder's
    TABLE = 6      # the capacity's pages do not fit the block table from table_base on


def context_write(config: AttentionConfig) -> data.StructLayout:
    """An entry to enter (``valid``) or a context to forget."""
    return data.StructLayout({"index": 16, "valid": 1, "entry": context_entry(config)})


def context_view(config: AttentionConfig) -> data.StructLayout:
    """A context as a command finds it."""
    return data.StructLayout({"valid": 1, "entry": context_entry(config)})


class ContextTable(wiring.Component):
    """Holds the entries of all contexts and checks them as they are entered.

    **Latency**: lookup 2 cycles; write 3 cycles until ``o_fault``.

    **Throughput**: one lookup per 2 cycles; one write per 4 cycles.

    **Errors**: an entry that fails a check is not entered, the context becomes invalid, and
    ``fault`` tells why. A lookup of an index above the table gives an invalid view.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_write : ``In(stream)`` of ``context_write``
    fault : ``Out(ContextFault)``
        Outcome of the latest write; with ``rejected`` high for one cycle when it was refused.
    i_lookup : ``In(stream)`` of 16-bit index
    o_view : ``Out(stream)`` of ``context_view``
    length_index, length_valid, length : length of any context, one cycle after its index
    i_length : ``In(stream)`` of {index, length}
        New length of a context, after an append; always taken.
    """

    def __init__(self, config: AttentionConfig):
        self._config = config
        super().__init__({
            "i_write": In(stream.Signature(context_write(config))),
            "fault": Out(ContextFault),
            "rejected": Out(1),
            "i_lookup": In(stream.Signature(16)),
            "o_view": Out(stream.Signature(context_view(config))),
            "i_length": In(stream.Signature(
                data.StructLayout({"index": 16, "length": config.token_bits}))),
            "length_index": In(16),
            "length_valid": Out(1),
            "length": Out(config.token_bits),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        entry_layout = context_entry(config)

        m.submodules.entries = entries = Sram(
            entry_layout, depth=max(2, config.contexts))
        m.submodules.lengths = lengths = Memory(
            shape=config.token_bits, depth=config.contexts, init=[])
        length_write = lengths.write_port()
        lookup_length = lengths.read_port(transparent_for=(length_write,))
        view_length = lengths.read_port(transparent_for=(length_write,))
        valid = Signal(config.contexts)

        # Write: check in one cycle, enter in the next.
        fault = self._check(m, self.i_write.payload)
        checked = Signal()
        m.d.sync += checked.eq(self.i_write.valid & ~checked & ~self.i_write.ready)
        m.d.comb += self.i_write.ready.eq(checked & ~self.i_length.valid)
        write = self.i_write.payload
        enter = Signal()
        accepted = Signal()
        m.d.comb += [
            enter.eq(self.i_write.valid & self.i_write.ready),
            accepted.eq(enter & write.valid & (fault == ContextFault.NONE.value)),
            entries.write.en.eq(accepted),
            entries.write.addr.eq(write.index),
            entries.write.data.eq(write.entry),
        ]
        m.d.sync += self.rejected.eq(0)
        with m.If(enter):
            m.d.sync += [
                self.fault.eq(Mux(write.valid, fault, ContextFault.NONE.value)),
                self.rejected.eq(write.valid & (fault != ContextFault.NONE.value)),
            ]
            with m.If(write.index < config.contexts):
                m.d.sync += valid.bit_select(write.index, 1).eq(accepted)

        # Lengths change at entry and at the end of an append, which takes precedence.
        m.d.comb += [
            self.i_length.ready.eq(1),
            length_write.en.eq(self.i_length.valid | accepted),
            length_write.addr.eq(Mux(self.i_length.valid, self.i_length.payload.index, write.index)),
            length_write.data.eq(
                Mux(self.i_length.valid, self.i_length.payload.length, write.entry.length)),
        ]

        # Register view.
        m.d.comb += view_length.addr.eq(self.length_index)
        m.d.sync += self.length_valid.eq(self._is_valid(valid, self.length_index))
        m.d.comb += self.length.eq(view_length.data)

        # Lookup.
        reading = Signal()
        index = self.i_lookup.payload
        m.d.comb += [
            self.i_lookup.ready.eq(~reading & ~self.o_view.valid),
            entries.read.en.eq(self.i_lookup.valid & self.i_lookup.ready),
            entries.read.addr.eq(index),
            lookup_length.en.eq(entries.read.en),
            lookup_length.addr.eq(index),
        ]
        m.d.sync += reading.eq(entries.read.en)
        with m.If(entries.read.en):
            m.d.sync += self.o_view.payload.valid.eq(self._is_valid(valid, index))
        with m.If(reading):
            m.d.sync += [
                self.o_view.payload.entry.eq(entries.read.data),
                self.o_view.payload.entry.length.eq(lookup_length.data),
                self.o_view.valid.eq(1),
            ]
        with m.If(self.o_view.valid & self.o_view.ready):
            m.d.sync += self.o_view.valid.eq(0)
        return m

    def _is_valid(self, valid, index):
        return (index < self.config.contexts) & valid.bit_select(index, 1)

    def _check(self, m, write):
        """Registered verdict on a write, valid in the cycle after it appears."""
        config = self.config
        entry = write.entry
        row_mask = config.row_bytes - 1
        rows = ("key_base", "key_page_stride", "key_row_stride",
                "value_base", "value_page_stride", "value_row_stride",
                "summary_base", "summary_page_stride")
        misaligned = Const(0)
        for name in rows:
            misaligned |= (entry[name] & row_mask).any()
        if config.code_source == "streamed":
            misaligned |= (entry.code_address & (config.memory_bytes - 1)).any()
            codes_bad = Const(0)
        else:
            start = Signal(33 + config.lanes.bit_length())
            m.d.comb += start.eq(entry.code_line * config.lanes)
            codes_bad = ((start + entry.capacity > config.resident_tokens)
                         | (start & (PAGE_TOKENS - 1)).any())
        fault = Signal(ContextFault)
        verdicts = [
            (write.index >= config.contexts, ContextFault.INDEX),
            (misaligned, ContextFault.ALIGNMENT),
            ((entry.capacity == 0) | (entry.capacity > config.max_tokens)
             | (entry.length > entry.capacity), ContextFault.CAPACITY),
            (codes_bad, ContextFault.CODES),
            (entry.weight_set >= config.encoder_sets, ContextFault.WEIGHTS),
            (entry.table_base + ((entry.capacity + PAGE_TOKENS - 1) >> 4) > config.table_pages,
             ContextFault.TABLE),
        ]
        m.d.sync += fault.eq(ContextFault.NONE)
        for bad, code in reversed(verdicts):
            with m.If(bad):
                m.d.sync += fault.eq(code)
        return fault.as_value()
