"""What share of the bus copies use, and how soon they begin: figures of the RTL.

``python -m sim.streaming.copy_use`` prints them.
"""

import json
from dataclasses import asdict

from hw.config import StreamingConfig
from sim.build import build_and_run
from sim.memory import MemoryBench, memory_source
from sim.streaming.copy_system import CopySystem

__all__ = ["WIDTHS", "measure"]

WIDTHS = (64, 128, 256, 512)   # bits
MEMORY_BYTES = 1 << 18
LAUNCH_BITS = 512              # width at which the way from command to bus is timed


def make_config(bits):
    """Bursts enough for a latency of 100 cycles, even if each is a beat."""
    return StreamingConfig(head_dim=64, bus_bytes=bits // 8, bursts=128, burst_bytes=1024,
                           windows=1, address_bits=32)


def _run(bits):
    config = make_config(bits)
    bench = MemoryBench(CopySystem(config), size_bytes=MEMORY_BYTES, outstanding=256)
    outcome = build_and_run(
        bench, name=f"copy_use_{bits}", sources=[memory_source()],
        inner=[("axi_memory", name) for name in ("arvalid", "wvalid", "wready")],
        bench="sim.streaming.bench_copy_use", arguments={"config": asdict(config)})
    return json.loads((outcome.folder / "figures.json").read_text(encoding="utf-8"))


def measure(widths=WIDTHS):
    """Run the benches, at a memory latency of 100 cycles.

    Returns
    -------
    dict
        ``streaming.copy.<bits>.use`` and ``streaming.copy64b.<bits>.use``: write beats per cycle,
        from the first to the last, of 64 KiB copies and of 500 copies of 64 bytes, back to back;
        ``streaming.launch.resident.cycles`` and ``streaming.launch.fetched.cycles``: from command
        and doorbell to the first address of the data on the AXI bus.
    """
    figures = {}
    for bits in widths:
        found = _run(bits)
        figures[f"streaming.copy.{bits}.use"] = found["large"]
        figures[f"streaming.copy64b.{bits}.use"] = found["small"]
        if bits == LAUNCH_BITS:
            for name in ("resident", "fetched"):
                figures[f"streaming.launch.{name}.cycles"] = found[name]
    return figures


if __name__ == "__main__":
    for key, value in measure().items():
        print(f"{key:40} {value:.4g}")
