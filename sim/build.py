"""Build a unit with Verilator once, and run cocotb benches on it.

A pytest file calls `build_and_run`; the bench itself is a module of cocotb tests beside it::

    def test_queue():
        build_and_run(Queue(8, depth=4), name="queue", bench="tests.rtl.stream.bench_queue")

Models are kept under ``build/sim``, named after the hash of everything that they are made from.
"""

import fcntl
import hashlib
import inspect
import json
import os
import re
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from amaranth.lib import wiring
from cocotb_tools.runner import get_runner

from hw.emit import write_unit
from hw.platform import module_name
from sim.host import write_launcher
from sim.tools import (
    BUILD,
    ROOT,
    ToolError,
    has_fst,
    is_hosted,
    tool_environment,
    verilator_identity,
)

__all__ = ["Model", "SimulationError", "build", "build_and_run", "default_seed", "run"]

SIM = BUILD / "sim"
WAIVERS = ROOT / "sim" / "rtl" / "lint.vlt"
HOST = ROOT / "sim" / "rtl" / "host.cpp"

BUILD_ARGS = (
    # The runner asks to make every signal visible, which costs 5 to 10 times the run time. What a
    # bench reads is named in a control file instead.
    "--no-public-flat-rw",
    "--no-timing",
    "--output-split", "0",
    "--output-split-cfuncs", "500",
    # Warnings are for `make lint` and its test; a bench may build what is not clean yet.
    "-Wno-fatal",
)


class SimulationError(AssertionError):
    """A model did not build, a test failed, or no test ran."""


@dataclass(frozen=True)
class Model:
    """A built model.

    Attributes
    ----------
    top : str
        Name of the top module.
    folder : Path
        Where it was built.
    sidecar : Path or None
        Description of the ports, if the top module was emitted from a component.
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    waves : bool
        Whether it can write a dump.
    """

    top: str
    folder: Path
    sidecar: Path | None = None
    simulator: str = "verilator"
    waves: bool = False


@dataclass
class Outcome:
    """Result of a run: names of the tests that passed, and where its files are."""

    folder: Path
    seed: int
    passed: list = field(default_factory=list)


def default_seed():
    """Seed of runs that name none: the variable ``KVS_SEED``, or 1."""
    return int(os.environ.get("KVS_SEED", "1"))


def _default_waves():
    return os.environ.get("KVS_WAVES", "0") not in ("", "0")


def build_and_run(component=None, *, bench, seed=None, tests=None, arguments=None, waves=None,
                  **build_options):
    """Build a model unless it is there already, and run a bench on it. See `build` and `run`."""
    waves = _default_waves() if waves is None else waves
    model = build(component, waves=waves, **build_options)
    return run(model, bench=bench, seed=seed, tests=tests, arguments=arguments)


def build(component=None, *, name, sources=(), top=None, parameters=None, inner=(), waves=False,
          simulator="verilator"):
    """Build a model, or find the one built before from the same things.

    Parameters
    ----------
    component : wiring.Component or None
        Unit to emit, as the module ``name``.
    name : str
        Name of the unit, and of the model's folder.
    sources : iterable of Path
        More Verilog files, such as a wrapper with a memory model.
    top : str or None
        Top module, if it is not ``name``. Then ``inner`` must name the ports that benches use.
    parameters : dict of str to int
        Verilog parameters of the top module.
    inner : iterable of (str, str)
        Signals that a bench reads besides the ports of ``name``: module and signal, each of which
        may have the wildcards ``*`` and ``?``.
    waves : bool
        Make a model that writes a dump (and runs ten times slower).
    simulator : str
        ``"verilator"``, or ``"icarus"`` where the Debian package ``iverilog`` is installed.

    Returns
    -------
    Model

    Raises
    ------
    SimulationError
        It does not build; the message ends with the end of the log.
    ToolError
        A tool is missing.
    """
    top = name if top is None else top
    sources = [Path(source) for source in sources]
    sidecar = None
    if component is not None:
        emitted = _emit(component, name)
        sources.insert(0, emitted)
        if top == name:
            sidecar = emitted.with_suffix(".json")
            ports = json.loads(sidecar.read_text(encoding="utf-8"))["ports"]
            # Every emitted unit with a register has them; naming one that is absent is no error.
            inner = [*((top, port["name"]) for port in ports), (top, "clk"), (top, "rst"), *inner]

    control = "`verilator_config\n" + "".join(
        f'public_flat_rw -module "{module}" -var "{signal}"\n' for module, signal in inner)
    settings = {
        "top": top, "parameters": parameters or {}, "control": control, "waves": waves,
        "fst": waves and has_fst(), "args": BUILD_ARGS, "waivers": WAIVERS.read_text(),
        "sources": [source.read_text(encoding="utf-8") for source in sources],
        "simulator": verilator_identity() if simulator == "verilator" else simulator,
        "cocotb": version("cocotb"), "python": sys.executable, "hosted": is_hosted(),
    }
    digest = _hash(json.dumps(settings))
    folder = SIM / f"{name}-{digest}"
    done = folder / "done"
    with _locked(folder):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            started = time.monotonic()
            _build_model(simulator, folder, top, sources, control, settings)
            done.touch()
            print(f"built {folder.relative_to(ROOT)} in {time.monotonic() - started:.1f} s")
    return Model(top=top, folder=folder, sidecar=sidecar, simulator=simulator, waves=waves)


def _build_model(simulator, folder, top, sources, control, settings):
    build_args = []
    if simulator == "verilator":
        control_path = folder / "public.vlt"
        control_path.write_text(control, encoding="utf-8")
        sources = [WAIVERS, control_path, *sources]
        build_args = [*BUILD_ARGS, *(["--trace-fst"] if settings["fst"] else [])]
        if settings["hosted"]:
            build_args += ["-CFLAGS", "-fPIC", "-LDFLAGS", "-shared", str(HOST)]
    elif settings["hosted"]:
        raise ToolError("Icarus loads cocotb with Python's shared library, which was not found: "
                        "apt-get install libpython3-dev")
    else:
        build_args = ["-g2012"]
    log = folder / "build.log"
    try:
        with tool_environment():
            get_runner(simulator).build(
                sources=sources, hdl_toplevel=top, parameters=settings["parameters"],
                build_args=build_args, build_dir=folder, waves=settings["waves"],
                timescale=("1ns", "1ps"), log_file=log, always=True)
        if simulator == "verilator" and settings["hosted"]:
            library = (folder / top).rename(folder / f"lib{top}.so")
            write_launcher(folder / top, library)
    except (SystemExit, Exception) as error:
        if log.exists():
            raise SimulationError(f"{top} does not build: {error}\n{_tail(log)}") from error
        raise


def _emit(component, name):
    """Emit a component, unless it was emitted before from the same sources and arguments."""
    try:
        identity = module_name(component)
    except TypeError:
        identity = None  # an argument that can not be told apart from others: emit every time
    if identity is None:
        return write_unit(component, name=name, folder=SIM / "rtl" / f"{name}-{os.getpid()}")
    parts = _parts(component)
    files = {Path(inspect.getfile(cls)) for part in parts for cls in type(part).__mro__[:-1]}
    files.update(path for path in (ROOT / "hw").rglob("*") if path.suffix in (".py", ".v"))
    contents = [path.read_text(encoding="utf-8") for path in sorted(files)]
    folder = SIM / "rtl" / f"{name}-{_hash(json.dumps([identity, *contents]))}"
    verilog_path = folder / f"{name}.v"
    with _locked(folder):
        # The sidecar is written last.
        if not verilog_path.with_suffix(".json").exists():
            return write_unit(component, name=name, folder=folder)
    for part in parts:
        part._MustUse__used = True  # elaborated by an earlier run
    return verilog_path


def _parts(component):
    """A component and those that it was made with or has made, at any depth."""
    inner = [value for value in vars(component).values() if isinstance(value, wiring.Component)]
    return [component, *(part for value in inner for part in _parts(value))]


def run(model, *, bench, seed=None, tests=None, arguments=None, quiet=False):
    """Run the cocotb tests of a module on a model.

    Parameters
    ----------
    model : Model
        What `build` returned.
    bench : str
        Dotted name of the module that holds the cocotb tests.
    seed : int or None
        Seed of Python's ``random`` in the bench and of the contents of memories at power-up.
        ``None``: see `default_seed`. Printed.
    tests : str or None
        Regular expression: run only the tests whose name it matches.
    arguments : dict or None
        Passed to the bench, which reads it with ``sim.testbench.arguments()``; JSON values.
    quiet : bool
        Do not print the line that reports success.

    Returns
    -------
    Outcome

    Raises
    ------
    SimulationError
        A test failed, none ran, or the simulation ended early; the message has the end of the log.
    """
    seed = default_seed() if seed is None else seed
    text = json.dumps(arguments or {})
    label = bench.rsplit(".", 1)[-1]
    folder = model.folder / "run" / f"{label}-{seed}-{_hash(f'{bench} {tests} {text}')}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "run.log"
    results = folder / "results.xml"
    environment = {"KVS_ARGUMENTS": text}
    if model.sidecar is not None:
        environment["KVS_SIDECAR"] = str(model.sidecar)
    # What is not reset holds random bits, so that a unit which relies on zeros there is found.
    plusargs = ["+verilator+rand+reset+2", f"+verilator+seed+{seed % (2**31 - 1) + 1}"]
    started = time.monotonic()
    error = None
    with tool_environment():
        try:
            get_runner(model.simulator).test(
                test_module=bench, hdl_toplevel=model.top, hdl_toplevel_lang="verilog",
                build_dir=model.folder, test_dir=folder, results_xml=str(results), seed=seed,
                test_filter=tests, waves=model.waves, extra_env=environment, log_file=log,
                plusargs=plusargs if model.simulator == "verilator" else [])
        except SystemExit as exit_error:
            error = exit_error
    return _judge(Outcome(folder, seed), bench, results, log, error, quiet,
                  time.monotonic() - started)


def _judge(outcome, bench, results, log, error, quiet, seconds):
    """Raise unless at least one test ran and all passed."""
    failed = []
    if results.exists():
        for case in ElementTree.parse(results).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(case.get("name"))
            elif case.find("skipped") is None:
                outcome.passed.append(case.get("name"))
    where = f"{bench}, seed {outcome.seed}, log {log.relative_to(ROOT)}"
    if failed:
        raise SimulationError(f"failed: {', '.join(failed)} ({where})\n{_tail(log)}")
    if error is not None:
        raise SimulationError(f"simulation ended early ({where})\n{_tail(log)}")
    if not outcome.passed:
        raise SimulationError(f"no test ran ({where})\n{_tail(log)}")
    if not quiet:
        print(f"{bench}: {len(outcome.passed)} passed, seed {outcome.seed}, {seconds:.1f} s")
        for dump in outcome.folder.glob("dump.*"):
            print(f"waves: {dump.relative_to(ROOT)}")
    return outcome


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _tail(log, lines=60):
    if not log.exists():
        return ""
    text = log.read_text(encoding="utf-8", errors="replace")
    return "\n".join(re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()[-lines:])


@contextmanager
def _locked(folder):
    """Let one process at a time make a folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
