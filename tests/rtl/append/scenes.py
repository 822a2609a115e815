"""What the bench and its pytest file must agree on."""

from hw.config import AttentionConfig
from hw.presets import PRESETS
from tests.append_system import AppendScene, AppendSystem

SIZE = 1 << 16

CONFIGS = {
    "tiny": PRESETS["tiny"].attention,
    "streamed": AttentionConfig(
        head_dim=64, code_bits=128, lanes=16, max_tokens=1024, memory_bytes=8, contexts=3,
        code_source="streamed", table_pages=8, address_bits=40),
}


def make_unit(name):
    """The unit of a configuration; its rows wait for the block table of a scene."""
    config = CONFIGS[name]
    return AppendSystem(config, entries=len(AppendScene(config, bytes(SIZE), seed=0).table))
