"""The register map of the streaming engine, described once.

The hardware decodes from this list, the benches address by it, and
``docs/streaming_registers.md`` is what ``python -m hw.streaming.register_map`` prints.
"""

from dataclasses import dataclass

from hw.bus.register_map import Register, find_address, place
from hw.bus.register_map import to_markdown as map_to_markdown

__all__ = [
    "COUNTERS", "IDENTITY", "JOB_FIELDS", "REGISTERS", "SIZES", "VERSION", "WIDTHS", "JobField",
    "address_of", "to_markdown",
]

IDENTITY = 0x4B565353
VERSION = (1, 0)
NEVER = (1 << 32) - 1

SIZES = ("head_dim", "bus_bytes", "chunk_tokens", "chunks", "table_pages", "windows",
         "outstanding", "bursts")


# Registers of fewer bits than 32: wider values are refused.
WIDTHS = {"report_mask": 21, "event_index": 7, "chain_limit": 16, "chain_tag": 16}


@dataclass(frozen=True)
class JobField:
    """A register that holds still while a job runs: values below ``low`` or above ``high`` are
    refused. ``high`` a string: that field of the configuration."""

    name: str
    low: int
    high: int | str
    initial: int
    text: str


JOB_FIELDS = (
    JobField("records", 0, NEVER, 0, "Address of the chunk records, low word; a multiple of 64"),
    JobField("records_high", 0, NEVER, 0, "... high word"),
    JobField("schedule", 0, NEVER, 0, "Address of the schedule, low word; a multiple of 64"),
    JobField("schedule_high", 0, NEVER, 0, "... high word"),
    JobField("first_id", 0, NEVER, 0, "chunk_id of chunk 0 in frames and requests"),
    JobField("job_chunks", 1, "chunks", 1, "Chunks of the job: blocks * layers * heads"),
    JobField("blocks", 1, "chunks", 1, "Token blocks"),
    JobField("layers", 1, "chunks", 1, "Layers"),
    JobField("heads", 1, "chunks", 1, "KV heads"),
    JobField("stages", 1, 256, 1, "Stages of the schedule"),
    JobField("tick_log2", 0, 15, 0, "A tick is 2^tick_log2 cycles"),
    JobField("rule", 0, 1, 0, "Dependencies: 0 the paper's, 1 strict"),
    JobField("stream_outstanding", 1, "outstanding", 1, "Requests in flight on the link"),
    JobField("compute_outstanding", 1, "outstanding", 1, "Requests in flight for computing"),
    JobField("scan", 1, 255, 32, "Entries or columns looked at in a search"),
    JobField("stream_ahead", 0, 255, 255, "Stages that the link may be ahead"),
    JobField("compute_ahead", 0, 255, 255, "Stages that computing may be ahead"),
    JobField("retries", 0, 3, 0, "Times a chunk is streamed again after a failure"),
    JobField("stream_timeout", 1, NEVER, 1 << 24, "Ticks until a request of the link has failed"),
    JobField("compute_timeout", 1, NEVER, 1 << 24, "Ticks until a computation has failed"),
    JobField("refine", 0, 1, 1, "Move work between the routes"),
    JobField("guard", 0, 1, 1, "... only what is expected to end sooner"),
    JobField("idle", 0, 1, 1, "... also to a route with nothing to do"),
    JobField("window_log2", 0, 4, 2, "Log2 of the ratios in the sliding window"),
    JobField("margin", 0, 255, 13, "In 1/256: by how much the slower route is slower"),
    JobField("cap", 0, 255, 255, "Moves per stage"),
    JobField("period", 0, NEVER, 0, "Ticks between refinements when nothing happens; 0: none"),
)

COUNTERS = (
    ("cycles_busy", "Cycles in which work went on and nothing below applies"),
    ("cycles_memory", "Cycles in which the engine waited for the memory port"),
    ("cycles_output", "Cycles in which the report stream was not taken"),
    ("cycles_link", "Cycles in which it waited for the link"),
    ("cycles_idle", "Cycles without a job, a command or a frame"),
    ("beats_read", "Memory beats read"),
    ("beats_written", "Memory beats written"),
    ("beats_link", "Beats taken from the link"),
    ("records_failed", "Chunk records that could not be read, or were no good"),
    ("answers_unknown", "Answers of the compute port whose id is not one of the job"),
)

_CONTROL = (
    Register("id", 0x00, "ro", f"0x{IDENTITY:08x} (\"KVSS\")"),
    Register("version", 0x04, "ro", "Major in 31:16, minor in 15:0"),
    Register("interrupt_pending", 0x08, "w1c",
             "Bit 0: a job ended; 1: a chunk is lost; 2: a frame was refused; 3: a copy command "
             "ended; 4: a copy command failed; 5: a chunk is present"),
    Register("interrupt_enable", 0x0C, "rw", "Bits as interrupt_pending"),
    Register("report_mask", 0x10, "rw",
             "Reports wanted: bit n decision n, bit 18 frames, bit 19 copies, bit 20 jobs"),
    Register("counter_clear", 0x14, "wo", "Write 1: all counters to zero"),
    Register("event_index", 0x18, "rw", "Kind of report in 6:5, code in 4:0"),
    Register("event_count", 0x1C, "ro", "How often it was reported, wanted or not"),
    Register("busy", 0x20, "ro", "Bit 0: a job runs; bit 1: copy commands are in progress"),
    Register("table_index", 0x24, "rw", "Block-table entry to write next"),
    Register("table_page", 0x28, "wo",
             "Physical page of that entry, 24 bits; writing it enters it and increments "
             "table_index"),
    Register("window_index", 0x2C, "rw", "Window that window_enter writes"),
    Register("window_base", 0x30, "rw", "First byte of the window, low word"),
    Register("window_base_high", 0x34, "rw", "... high word"),
    Register("window_last", 0x38, "rw", "Last byte of the window, low word"),
    Register("window_last_high", 0x3C, "rw", "... high word"),
    Register("window_enter", 0x40, "wo", "Write 1: grant the window; write 0: withdraw it"),
    Register("chain_address", 0x44, "rw", "Address of a chain of descriptors, low word"),
    Register("chain_address_high", 0x48, "rw", "... high word"),
    Register("chain_limit", 0x4C, "rw", "Most descriptors of the chain, 16 bits"),
    Register("chain_tag", 0x50, "rw", "Tag of errors of the chain itself, 16 bits"),
    Register("chain_start", 0x54, "wo", "Write 1: run the chain"),
    Register("copy_abort", 0x58, "wo", "Write 1: end all copy commands"),
    Register("job_start", 0x5C, "wo", "Write 1: load the schedule and run it"),
    Register("job_abort", 0x60, "wo", "Write 1: end the job"),
    Register("job_present", 0x64, "ro", "Chunks present"),
    Register("job_lost", 0x68, "ro", "Chunks lost"),
    Register("job_stage", 0x6C, "ro", "Current stage"),
    Register("now", 0x70, "ro", "Ticks since the start of the job"),
)

REGISTERS = (
    *_CONTROL,
    *place([(name, f"Built in: {name}") for name in SIZES], 0x80, "ro"),
    *place([(field.name, field.text) for field in JOB_FIELDS], 0xC0, "rw"),
    *place(COUNTERS, 0x180, "ro"),
)


def address_of(name: str) -> int:
    """Byte address of a register; see `find_address`."""
    return find_address(REGISTERS, name)


def to_markdown() -> str:
    """The register map as a Markdown page."""
    return map_to_markdown(
        "Registers of the streaming engine",
        "AXI4-Lite, 32 bits wide, byte addresses. This page is what `python -m "
        "hw.streaming.register_map` prints.\n\n"
        "These answer SLVERR and change nothing: an address without a register, a write to a "
        "read-only register, a read of a\nwrite-only one, a write of less than a word, a value "
        "outside a register's range, a job's register or `job_start` while\na job runs, a "
        "`table_page` with `table_index` above the table or more than 24 bits, a "
        "`window_enter` while `busy` is not 0, or with a\nwindow that does not exist or a base "
        "above the last byte, and an address too wide: of a window, a chain, or a job.",
        REGISTERS)


if __name__ == "__main__":
    print(to_markdown(), end="")
