"""What the benches and their pytest file must agree on."""

from hw.config import StreamingConfig
from hw.streaming.layouts import windows
from sim.streaming.copy_system import CopySystem
from tests.hw.streaming.copies import window_fields

SIZE = 1 << 16          # of the memory that copies read and write
CHAINS = SIZE           # descriptors lie behind it
MEMORY = 2 * SIZE


def make_config(bus_bytes, **options):
    return StreamingConfig(**{
        "head_dim": 64, "bus_bytes": bus_bytes, "burst_bytes": 512, "bursts": 8, "windows": 2,
        "address_bits": 24, **options})


CONFIGS = {f"bus{bus_bytes}": make_config(bus_bytes) for bus_bytes in (8, 16, 32, 64)}
# The largest bursts that AXI allows, and the smallest ones.
CONFIGS["long"] = make_config(16, burst_bytes=4096, bursts=4)
CONFIGS["beats"] = make_config(8, burst_bytes=8, bursts=32)


def make_unit(name):
    return CopySystem(CONFIGS[name])


def window_bits(config, granted):
    """The value of the input ``windows``."""
    return windows(config).const(window_fields(granted)).as_bits()
