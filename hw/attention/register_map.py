"""The register map of the attention unit, described once.

The hardware decodes from this list, the benches address by it, and ``docs/registers.md`` is what
``python -m hw.attention.register_map`` prints.
"""

from hw.bus.register_map import Register, find_address, place
from hw.bus.register_map import to_markdown as map_to_markdown

__all__ = [
    "COUNTERS", "ENTRY_FIELDS", "IDENTITY", "REGISTERS", "VERSION", "address_of", "to_markdown",
]

IDENTITY = 0x4B565341
VERSION = (1, 0)

# Staged context entry: (field of ``context_entry``, is it an address of two words).
ENTRY_FIELDS = (
    ("length", False), ("capacity", False), ("code_line", False), ("code_address", True),
    ("table_base", False), ("weight_set", False),
    ("key_base", True), ("key_limit", True), ("key_page_stride", False), ("key_row_stride", False),
    ("value_base", True), ("value_limit", True), ("value_page_stride", False),
    ("value_row_stride", False),
    ("summary_base", True), ("summary_limit", True), ("summary_page_stride", False),
)

COUNTERS = (
    ("cycles_busy", "Cycles in which work went on and nothing below applies"),
    ("cycles_memory", "Cycles in which the unit waited for the memory port"),
    ("cycles_output", "Cycles in which the result stream was not taken"),
    ("cycles_idle", "Cycles without a command"),
    ("cycles_matching", "Cycles in which code lines were compared"),
    ("cycles_scanning", "Cycles in which pages were scanned for selected tokens"),
    ("beats_read", "Memory beats read"),
    ("beats_written", "Memory beats written"),
    ("commands", "Commands closed, failed ones included"),
    ("contexts_rejected", "Context entries refused"),
    ("errors_opcode", "Commands that failed with error OPCODE"),
    ("errors_context", "... CONTEXT"),
    ("errors_empty", "... EMPTY"),
    ("errors_visible", "... VISIBLE"),
    ("errors_budget", "... BUDGET"),
    ("errors_capacity", "... CAPACITY"),
    ("errors_window", "... WINDOW"),
    ("errors_bus", "... BUS"),
    ("errors_short", "... SHORT"),
    ("errors_data", "... DATA"),
    ("errors_exponent", "... EXPONENT"),
    ("errors_write", "... WRITE"),
)

_CONTROL = (
    Register("id", 0x00, "ro", f"0x{IDENTITY:08x} (\"KVSA\")"),
    Register("version", 0x04, "ro", "Major in 31:16, minor in 15:0"),
    Register("head_dim", 0x08, "ro", "Elements of a row"),
    Register("code_bits", 0x0C, "ro", "Bits of a code"),
    Register("lanes", 0x10, "ro", "Codes matched per cycle"),
    Register("max_tokens", 0x14, "ro", "Longest context"),
    Register("group", 0x18, "ro", "Query heads per KV head"),
    Register("contexts", 0x1C, "ro", "Entries of the context table"),
    Register("interrupt_pending", 0x20, "w1c",
             "Bit 0: a command closed; bit 1: a command failed"),
    Register("interrupt_enable", 0x24, "rw", "Bits as interrupt_pending"),
    Register("counter_clear", 0x28, "wo", "Write 1: all counters to zero"),
    Register("busy", 0x2C, "ro", "1 while a command is in progress"),
    Register("table_index", 0x30, "rw", "Block-table entry to write next"),
    Register("table_page", 0x34, "wo",
             "Physical page of that entry, 24 bits; writing it enters it and increments "
             "table_index"),
    Register("context_index", 0x40, "rw", "Context that the registers below act on"),
    Register("context_enter", 0x44, "wo",
             "Write 1: enter the staged entry; write 0: make the context invalid"),
    Register("context_fault", 0x48, "ro",
             "Outcome of the latest entry: 0 entered, 1 index, 2 alignment, 3 capacity, "
             "4 code region, 5 weight set, 6 block table, 7 a value too wide for its field"),
    Register("context_length", 0x4C, "ro",
             "Bit 31: context_index is valid; below it: its current length"),
)
_ENTRY_BASE = 0x80
_COUNTER_BASE = 0x180


def _entry_registers():
    for name, is_address in ENTRY_FIELDS:
        yield f"entry_{name}", f"Staged entry: {name}" + (", low word" if is_address else "")
        if is_address:
            yield f"entry_{name}_high", f"Staged entry: {name}, high word"


REGISTERS = (
    *_CONTROL,
    *place(_entry_registers(), _ENTRY_BASE, "rw"),
    *place(COUNTERS, _COUNTER_BASE, "ro"),
)


def address_of(name: str) -> int:
    """Byte address of a register; see `find_address`."""
    return find_address(REGISTERS, name)


def to_markdown() -> str:
    """The register map as a Markdown page."""
    return map_to_markdown(
        "Registers of the attention unit",
        "AXI4-Lite, 32 bits wide, byte addresses. This page is what `python -m "
        "hw.attention.register_map` prints.\n\n"
        "These answer SLVERR and change nothing: an address without a register, a write to a "
        "read-only register, a read of a\nwrite-only one, a write of less than a word, and a "
        "`table_page` with `table_index` above the table or more than 24 bits.",
        REGISTERS)


if __name__ == "__main__":
    print(to_markdown(), end="")
