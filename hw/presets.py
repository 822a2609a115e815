"""Named configurations: the list that drives the command line, the tests and CI."""

from hw.config import AttentionConfig

__all__ = ["PRESETS"]

PRESETS: dict[str, AttentionConfig] = {
    # Small enough for CI, the demo and a mid-size FPGA.
    "tiny": AttentionConfig(
        head_dim=32, code_bits=64, lanes=4, max_tokens=1024, memory_bytes=16,
        contexts=4, table_pages=256, address_bits=32,
    ),
    # One KV head of a small model beside an embedded accelerator.
    "edge": AttentionConfig(
        head_dim=64, code_bits=64, lanes=16, max_tokens=8192, memory_bytes=32,
        contexts=16, table_pages=2048, encoder_lanes=4, result_lanes=8,
    ),
    # 128 K tokens; the codes outgrow the chip and are streamed from memory.
    "server": AttentionConfig(
        head_dim=128, code_bits=128, lanes=32, max_tokens=131072, memory_bytes=64,
        code_source="streamed", exponent_block=128, contexts=256, table_pages=65536,
        encoder_lanes=8, result_lanes=16, read_rows=64,
    ),
}
