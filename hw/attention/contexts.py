"""Context table: where each context's tokens, codes and rows lie, and how long it is."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.attention.layouts import context_entry
from hw.config import PAGE_TOKENS, AttentionConfig
from hw.sram import Sram

__all__ = ["ContextFault", "ContextTable", "context_length", "context_view", "context_write"]

# Fields of an entry that must be multiples of a row, so that no row crosses 4 KiB.
ROW_ALIGNED = (
    "key_base", "key_page_stride", "key_row_stride",
    "value_base", "value_page_stride", "value_row_stride",
    "summary_base", "summary_page_stride",
)


class ContextFault(enum.Enum, shape=3):
    """Why a context entry was refused; of several reasons the lowest."""

    NONE = 0
    INDEX = 1      # index above the table
    ALIGNMENT = 2  # a base or stride is not a multiple of row_bytes (code_address: of a beat)
    CAPACITY = 3   # capacity 0 or above max_tokens, or length above capacity
    CODES = 4      # code region outside the code memory, or not starting on a page
    WEIGHTS = 5    # weight set above the encoder's
    TABLE = 6      # the capacity's pages do not fit the block table from table_base on
    WIDTH = 7      # a value that its field is too narrow for


def context_write(config: AttentionConfig) -> data.StructLayout:
    """An entry to enter (``valid``) or a context to forget.

    ``truncated``: a value of the entry lost bits on its way into its field.
    """
    return data.StructLayout({
        "index": 16, "valid": 1, "truncated": 1, "entry": context_entry(config)})


def context_view(config: AttentionConfig) -> data.StructLayout:
    """A context as a command finds it. The entry of one that is not ``valid`` means nothing."""
    return data.StructLayout({"valid": 1, "entry": context_entry(config)})


def context_length(config: AttentionConfig) -> data.StructLayout:
    """The length of a context after an append."""
    return data.StructLayout({"index": 16, "length": config.token_bits})


class ContextTable(wiring.Component):
    """Holds the entries of all contexts, and checks them as they are entered.

    A new length belongs to the latest lookup. It is dropped when that context was entered anew, or
    forgotten, in between: it counts tokens of the old entry, and the new one may lack their room.

    **Latency**: lookup 1 cycle; ``fault`` 2 cycles after a write, 1 more when a length comes in.

    **Throughput**: one lookup, and one write, per 2 cycles.

    **Numerics**: none.

    **Errors**: an entry that fails a check is not entered, its context becomes invalid, and
    ``fault`` tells why. A lookup of an index above the table gives an invalid view.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    i_write : ``In(stream)`` of ``context_write``
    fault : ``Out(ContextFault)``
        Outcome of the latest write.
    rejected : ``Out(1)``
        High in the first cycle of a ``fault`` other than NONE.
    i_lookup : ``In(stream)`` of context indices, 16 bits
    o_view : ``Out(stream)`` of ``context_view``
    i_length : ``In(stream)`` of ``context_length``, always ready
    length_index : ``In(16)``
    length_valid, length : ``Out``
        That context's, one cycle later; 0 when it is not valid.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"ContextTable config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i_write": In(stream.Signature(context_write(config))),
            "fault": Out(ContextFault),
            "rejected": Out(1),
            "i_lookup": In(stream.Signature(16)),
            "o_view": Out(stream.Signature(context_view(config))),
            "i_length": In(stream.Signature(context_length(config))),
            "length_index": In(16),
            "length_valid": Out(1),
            "length": Out(config.token_bits),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        depth = max(2, self.config.contexts)
        m.submodules.entries = entries = Sram(context_entry(self.config), depth=depth)
        # Lengths apart from the entries: an append changes its context's length alone.
        m.submodules.lengths = lengths = Memory(
            shape=self.config.token_bits, depth=depth, init=[])
        valid = Signal(self.config.contexts)

        entered = self._write(m, entries, valid)
        self._look_up(m, entries, lengths.read_port(), valid)
        self._update_length(m, lengths.write_port(), entered)
        self._show_length(m, lengths.read_port(), valid)
        return m

    def _is_valid(self, valid, index):
        return (index < self.config.contexts) & valid.bit_select(index, 1)

    def _write(self, m, entries, valid):
        """Enter or forget a context once the verdict is there. Returns the strobe of entry."""
        write = self.i_write.payload
        fault = self._judge(m, write)
        judged, taken, entered = Signal(), Signal(), Signal()
        m.d.sync += judged.eq(self.i_write.valid & ~self.i_write.ready)
        m.d.comb += [
            # The memory of lengths has one write port.
            self.i_write.ready.eq(judged & ~self.i_length.valid),
            taken.eq(self.i_write.valid & self.i_write.ready),
            entered.eq(taken & write.valid & (fault == ContextFault.NONE)),
            entries.write.en.eq(entered),
            entries.write.addr.eq(write.index),
            entries.write.data.eq(write.entry),
        ]
        m.d.sync += self.rejected.eq(taken & write.valid & (fault != ContextFault.NONE))
        with m.If(taken):
            m.d.sync += self.fault.eq(Mux(write.valid, fault, ContextFault.NONE))
            with m.If(write.index < self.config.contexts):
                m.d.sync += valid.bit_select(write.index, 1).eq(entered)
        return entered

    def _judge(self, m, write):
        """The fault of a write, one cycle after it appears."""
        config, entry = self.config, write.entry
        fault = Signal(ContextFault)
        pages = (entry.capacity + PAGE_TOKENS - 1)[exact_log2(PAGE_TOKENS):]
        verdicts = {
            ContextFault.INDEX: write.index >= config.contexts,
            ContextFault.ALIGNMENT: self._is_misaligned(entry),
            ContextFault.CAPACITY: (entry.capacity == 0) | (entry.capacity > config.max_tokens)
                                   | (entry.length > entry.capacity),
            ContextFault.CODES: self._has_bad_codes(entry),
            ContextFault.WEIGHTS: entry.weight_set >= config.encoder_sets,
            ContextFault.TABLE: entry.table_base + pages > config.table_pages,
            ContextFault.WIDTH: write.truncated,
        }
        m.d.sync += fault.eq(ContextFault.NONE)
        for code, is_bad in reversed(verdicts.items()):
            with m.If(is_bad):
                m.d.sync += fault.eq(code)
        return fault

    def _is_misaligned(self, entry):
        config = self.config
        low_bits = Const(0, 1)
        for name in ROW_ALIGNED:
            low_bits |= entry[name] & (config.row_bytes - 1)
        if config.code_source == "streamed":
            low_bits |= entry.code_address & (config.memory_bytes - 1)
        return low_bits.any()

    def _has_bad_codes(self, entry):
        config = self.config
        if config.code_source == "streamed":
            return Const(0, 1)
        start = Cat(Const(0, exact_log2(config.lanes)), entry.code_line)
        is_outside = start + entry.capacity > config.resident_tokens
        # The smallest distance is kept for each page of the code memory.
        return is_outside | (start & (PAGE_TOKENS - 1)).any()

    def _look_up(self, m, entries, length_port, valid):
        """The memories hold what they read, so the view needs no register of its own."""
        index, view = self.i_lookup.payload, self.o_view.payload
        fires, is_valid = Signal(), Signal()
        m.d.comb += [
            self.i_lookup.ready.eq(~self.o_view.valid),
            fires.eq(self.i_lookup.valid & self.i_lookup.ready),
            is_valid.eq(self._is_valid(valid, index)),
            entries.read.en.eq(fires & is_valid),
            entries.read.addr.eq(index),
            length_port.en.eq(fires & is_valid),
            length_port.addr.eq(index),
            view.entry.eq(entries.read.data),
            view.entry.length.eq(length_port.data),
        ]
        with m.If(fires):
            m.d.sync += [self.o_view.valid.eq(1), view.valid.eq(is_valid)]
        with m.Elif(self.o_view.ready):
            m.d.sync += self.o_view.valid.eq(0)

    def _update_length(self, m, port, entered):
        """Lengths change at entry and after an append, which goes first."""
        write, update = self.i_write.payload, self.i_length.payload
        watched, is_stale = Signal(16), Signal()
        with m.If(self.i_lookup.valid & self.i_lookup.ready):
            m.d.sync += [watched.eq(self.i_lookup.payload), is_stale.eq(0)]
        # A write together with the lookup: the lookup still sees the old entry.
        looked_up = Mux(self.i_lookup.valid & self.i_lookup.ready, self.i_lookup.payload, watched)
        with m.If(self.i_write.valid & self.i_write.ready & (write.index == looked_up)):
            m.d.sync += is_stale.eq(1)
        m.d.comb += [
            self.i_length.ready.eq(1),
            port.en.eq((self.i_length.valid & ~is_stale) | entered),
            port.addr.eq(Mux(self.i_length.valid, update.index, write.index)),
            port.data.eq(Mux(self.i_length.valid, update.length, write.entry.length)),
        ]

    def _show_length(self, m, port, valid):
        m.d.comb += [
            port.addr.eq(self.length_index),
            self.length.eq(Mux(self.length_valid, port.data, 0)),
        ]
        m.d.sync += self.length_valid.eq(self._is_valid(valid, self.length_index))
