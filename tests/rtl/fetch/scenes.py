"""What the benches and their pytest file must agree on."""

from hw.config import AttentionConfig
from hw.presets import PRESETS
from tests.fetch_system import FetchSystem, Scene

SIZE = 1 << 16

CONFIGS = {
    "tiny": PRESETS["tiny"].attention,
    # A whole row per beat; and four beats per datapath beat.
    "wide": AttentionConfig(head_dim=64, code_bits=64, lanes=16, max_tokens=1024, memory_bytes=64,
                            table_pages=64, address_bits=40, exponent_block=64),
    "narrow": AttentionConfig(head_dim=64, code_bits=64, lanes=16, max_tokens=1024, memory_bytes=8,
                              table_pages=64, address_bits=20, read_rows=8),
}


def make_unit(name):
    """The unit of a configuration; its jobs wait for the block table of a scene."""
    config = CONFIGS[name]
    return FetchSystem(config, entries=len(Scene(config, seed=0, size=SIZE).table))
