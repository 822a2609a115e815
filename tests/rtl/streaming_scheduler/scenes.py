"""What the benches of the route scheduler run on."""

from hw.config import StreamingConfig

CONFIGS = {
    "small": StreamingConfig(head_dim=32, bus_bytes=8, chunks=64, outstanding=4),
    "wide": StreamingConfig(head_dim=32, bus_bytes=8, chunks=512, outstanding=16),
}
