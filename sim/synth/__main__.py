"""Command line of synthesis: ``python -m sim.synth --help``."""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console
from rich.table import Table

from hw.emit import write_unit
from hw.presets import PRESETS
from sim.bench.figures import merge_figures, read_figures, to_text, write_page
from sim.synth import ecp5, osu018
from sim.synth.designs import designs
from sim.tools import BUILD, ToolError

WORKERS = 2
COLUMNS = ("lut", "ff", "dsp", "bram", "fmax_mhz", "area_um2", "path_ns")
TOP = "design"


def measure(design, folder):
    """Figures of one design; its Verilog is there."""
    verilog = folder / f"{TOP}.v"
    figures = ecp5.synthesize(verilog, TOP, folder)
    if osu018.is_available():
        figures.update(osu018.map_cells(verilog, TOP, folder))
    return {f"synth.{design.name}.{column}": value for column, value in figures.items()}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m sim.synth",
        description="Synthesize for a Lattice ECP5-85F (and for OSU 0.18 um cells where Debian's "
                    "qflow-tech-osu018 and opensta are installed), and add the figures to "
                    "build/bench/figures.json, docs/figures.json and docs/performance.md.")
    parser.add_argument("--preset", choices=PRESETS, action="append",
                        help="may be repeated (default: tiny as a whole, edge part by part)")
    parser.add_argument("--only", metavar="NAME", help="designs whose name contains NAME")
    options = parser.parse_args(arguments)
    chosen = [design for preset in options.preset or ("tiny", "edge")
              for design in designs(preset) if (options.only or "") in design.name]
    if not chosen:
        parser.error(f"--only must be part of the name of a design, not {options.only!r}")
    console = Console()
    table = Table("design", *COLUMNS, title="Synthesis")
    figures = read_figures()
    failed = []

    def run(design):
        started = time.monotonic()
        try:
            found = measure(design, BUILD / "synth" / design.name)
        except ToolError as error:
            console.print(f"{design.name}: {error}", markup=False)
            failed.append(design.name)
            return {}
        console.print(f"{design.name}: {time.monotonic() - started:.0f} s")
        return found

    for design in chosen:
        write_unit(design.make(), name=TOP, folder=BUILD / "synth" / design.name)
    with console.status("synthesizing"), ThreadPoolExecutor(WORKERS) as pool:
        for design, found in zip(chosen, pool.map(run, chosen), strict=True):
            figures = merge_figures(found)
            table.add_row(design.name, *(
                to_text(found[key]) if (key := f"synth.{design.name}.{column}") in found else ""
                for column in COLUMNS))
    console.print(table)
    write_page(figures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
