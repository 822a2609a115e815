"""What the benches and their pytest file must agree on."""

from hw.config import StreamingConfig
from tests.writer_system import WriterScene, WriterSystem

SIZE = 1 << 17


def make_config(bus_bytes, *, head_dim, block=32, bursts=16):
    return StreamingConfig(
        head_dim=head_dim, bus_bytes=bus_bytes, exponent_block=block, bursts=bursts,
        chunk_tokens=64, chunks=4, table_pages=24, formats=("MXINT8",), outstanding=2,
        address_bits=24)


CONFIGS = {
    "bus8": make_config(8, head_dim=64, bursts=4),
    "bus16": make_config(16, head_dim=128),
    "bus64": make_config(64, head_dim=64, block=64),
    "bus64_two": make_config(64, head_dim=128),
}


def make_unit(name):
    """`PageWriter` on a `WriteMux`; placements wait for the block table of a scene."""
    config = CONFIGS[name]
    return WriterSystem(config, entries=len(WriterScene(config, bytes(SIZE), seed=0).table))
