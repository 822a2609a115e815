"""Command line of the benches: ``python -m sim.bench --help``."""

import argparse
import json
import sys
import time

from rich.console import Console
from rich.table import Table

from sim.bench import attention, bare, memory, streaming
from sim.bench.figures import ATTENTION, STREAMING, merge_figures, to_text, write_page
from sim.demo.__main__ import main as run_demo
from sim.tools import BUILD


def demo():
    """The demo's figures, on the whole shipped trace."""
    folder = BUILD / "bench" / "demo"
    status = run_demo(["--output", str(folder)])
    if status:
        raise SystemExit(f"the demo ended with status {status}")
    return json.loads((folder / "figures.json").read_text(encoding="utf-8"))


GROUPS = {**attention.GROUPS, **bare.GROUPS, "demo": demo, **streaming.GROUPS, **memory.GROUPS}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m sim.bench",
        description="Measure cycles, traffic and errors, and write build/bench/figures.json, "
                    "docs/figures.json and docs/performance.md.")
    parser.add_argument("groups", nargs="*", metavar="GROUP",
                        help=f"what to measure: {', '.join(GROUPS)} (default: all)")
    options = parser.parse_args(arguments)
    for name in options.groups:
        if name not in GROUPS:
            parser.error(f"GROUP must be one of {', '.join(GROUPS)}, not {name!r}")
    console = Console()
    figures = {}
    for name in options.groups or GROUPS:
        started = time.monotonic()
        with console.status(f"measuring {name}"):
            found = GROUPS[name]()
        figures = merge_figures(found)
        console.print(f"{name}: {len(found)} figures in {time.monotonic() - started:.0f} s")
    table = Table("figure", "asked", "measured", title="Figures")
    for key, _, asked in (*ATTENTION, *STREAMING):
        if key in figures:
            table.add_row(key, asked, to_text(figures[key]))
    console.print(table)
    write_page(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
