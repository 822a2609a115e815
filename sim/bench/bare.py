"""What Python costs: queries under cocotb, against the same model stepped from C++."""

import json
import os
import subprocess
from pathlib import Path

from golden.selection import Select, Selection
from hw.attention.register_map import ENTRY_FIELDS, address_of
from hw.presets import PRESETS
from sim.attention import Context, Query, Stopwatch, Table
from sim.attention.encoding import encode
from sim.attention.operations import Append, Weights
from sim.attention.session import build_model
from sim.bench.attention import MEMORY_LATENCY, Bench
from sim.build import SimulationError
from sim.payload import pack
from sim.tools import ROOT, tool_environment

__all__ = ["GROUPS"]

QUERIES = 6
REPLAY = ROOT / "sim" / "rtl" / "replay.cpp"


def ratio():
    """Wall-clock time of some dense queries of 4,096 tokens at ``edge``, both ways."""
    config = PRESETS["edge"].attention
    bench = Bench(config, [4096])
    start = bench.session.add(Stopwatch())
    dense = Selection(select=Select.DENSE)
    queries = [bench.query(dense, alone=False) for _ in range(QUERIES)]
    stop = bench.session.add(Stopwatch())
    results = bench.run()
    seconds = results[stop] - results[start]
    cycles = results[queries[-1]].end_cycle - results[queries[0]].start_cycle

    model = build_model(config, memory_size=bench.session.memory_size)
    bare_cycles, bare_seconds = replay(model, config, bench.session.operations)
    return {
        "sim.cocotb_over_bare.ratio": (seconds / cycles) / (bare_seconds / bare_cycles),
        "sim.cocotb.cycles_per_second": cycles / seconds,
        "sim.bare.cycles_per_second": bare_cycles / bare_seconds,
    }


def replay(model, config, operations):
    """Build the replay program on a model's objects and run it; returns cycles and seconds."""
    folder = model.folder / "replay"
    folder.mkdir(exist_ok=True)
    program, script = folder / "replay", folder / "script.txt"
    script.write_text("\n".join(to_script(model, config, operations)) + "\n", encoding="utf-8")
    objects = [model.folder / f"{name}.o" for name in (
        "verilated", "verilated_dpi", "verilated_vpi", "verilated_threads")]
    with tool_environment():
        root = subprocess.run(["verilator_bin", "--getenv", "VERILATOR_ROOT"],
                              capture_output=True, text=True, check=True).stdout.strip()
        include = Path(os.environ.get("VERILATOR_ROOT") or root) / "include"
        built = subprocess.run(
            ["g++", "-std=c++17", "-O2", f"-I{model.folder}", f"-I{include}", f"-I{include}/vltstd",
             str(REPLAY), str(model.folder / "Vtop__ALL.a"),
             *(str(path) for path in objects if path.exists()), "-lpthread", "-o", str(program)],
            capture_output=True, text=True, check=False)
        if built.returncode:
            raise SimulationError(f"the replay does not build:\n{built.stderr[-2000:]}")
        done = subprocess.run([str(program), str(script), str(MEMORY_LATENCY)],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        raise SimulationError(f"the replay failed: {(done.stdout + done.stderr)[-500:]}")
    cycles, seconds = done.stdout.split()
    return int(cycles), float(seconds)


def to_script(model, config, operations):
    """The operations in the replay's words."""
    command = port_shape(model.sidecar, "i_command_payload")
    beat = port_shape(model.sidecar, "i_data_payload")
    sent, watched = 0, False
    for operation in operations:
        if isinstance(operation, Table):
            yield f"W {address_of('table_index')} {operation.base}"
            for page in operation.pages:
                yield f"W {address_of('table_page')} {page}"
        elif isinstance(operation, Context):
            yield f"W {address_of('context_index')} {operation.index}"
            for name, is_address in ENTRY_FIELDS:
                value = int(operation.entry.get(name, 0))
                yield f"W {address_of(f'entry_{name}')} {value & 0xFFFFFFFF}"
                if is_address:
                    yield f"W {address_of(f'entry_{name}_high')} {value >> 32}"
            yield f"W {address_of('context_enter')} 1"
        elif isinstance(operation, (Weights, Append, Query)):
            fields, beats = encode(config, operation)
            yield f"C {pack(command, {'tag': sent, **fields}):x}"
            for value in beats:
                yield f"D {pack(beat, value):x}"
            sent += 1
        elif isinstance(operation, Stopwatch):
            yield f"R {sent}"
            if watched:
                return
            watched = True
            yield "T"


def port_shape(sidecar, name):
    ports = json.loads(Path(sidecar).read_text(encoding="utf-8"))["ports"]
    return next(port for port in ports if port["name"] == name)


GROUPS = {"sim": ratio}
