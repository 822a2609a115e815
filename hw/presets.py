"""Named configurations: the list that drives the command line, the tests and CI."""

from dataclasses import dataclass

from hw.config import AttentionConfig, StreamingConfig

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One configuration of each unit, by the unit's name."""

    attention: AttentionConfig
    streaming: StreamingConfig


PRESETS = {
    # Small enough for CI, the demo and a mid-size FPGA.
    "tiny": Preset(
        attention=AttentionConfig(
            head_dim=32, code_bits=64, lanes=4, max_tokens=1024, memory_bytes=16,
            contexts=4, table_pages=256, address_bits=32,
        ),
        streaming=StreamingConfig(
            head_dim=32, bus_bytes=8, chunk_tokens=256, chunks=64, table_pages=256, windows=2,
            outstanding=4, bursts=16, address_bits=32,
        ),
    ),
    # One KV head of a small model beside an embedded accelerator.
    "edge": Preset(
        attention=AttentionConfig(
            head_dim=64, code_bits=64, lanes=16, max_tokens=8192, memory_bytes=32,
            contexts=16, table_pages=2048, encoder_lanes=4, result_lanes=8,
        ),
        streaming=StreamingConfig(
            head_dim=64, bus_bytes=16, chunks=256, table_pages=2048, outstanding=8,
        ),
    ),
    # 128 K tokens; the codes outgrow the chip and are streamed from memory.
    "server": Preset(
        attention=AttentionConfig(
            head_dim=128, code_bits=128, lanes=32, max_tokens=131072, memory_bytes=64,
            code_source="streamed", exponent_block=128, contexts=256, table_pages=65536,
            encoder_lanes=8, result_lanes=16, read_rows=64,
        ),
        streaming=StreamingConfig(
            head_dim=128, bus_bytes=64, exponent_block=128, chunks=4096, table_pages=65536,
            windows=16, outstanding=16, bursts=64,
        ),
    ),
}
