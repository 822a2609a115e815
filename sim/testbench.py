"""What a cocotb bench needs before its first stimulus: arguments, sidecar, clock and reset."""

import json
import os
from functools import cache

from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

__all__ = ["CLOCK_NS", "arguments", "cycles", "port_of", "reset", "sidecar", "start"]

CLOCK_NS = 10


@cache
def arguments():
    """The ``arguments`` that `sim.build.run` was given."""
    return json.loads(os.environ["KVS_ARGUMENTS"])


@cache
def sidecar():
    """Description of the top module's ports, or None if it was not emitted from a component."""
    path = os.environ.get("KVS_SIDECAR")
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def port_of(name):
    """Description of a port of the top module."""
    found = [port for port in (sidecar() or {"ports": []})["ports"] if port["name"] == name]
    if not found:
        raise LookupError(f"the top module must be a component with a port {name!r}")
    return found[0]


async def start(dut):
    """Start the clock, and reset the unit with every input at 0. See `reset`."""
    for port in (sidecar() or {"ports": []})["ports"]:
        if port["direction"] == "input":
            getattr(dut, port["name"]).value = 0
    Clock(dut.clk, CLOCK_NS, unit="ns").start()
    await reset(dut)


async def reset(dut, *, reset_cycles=2):
    """Reset the unit.

    Returns just after an edge, in the first cycle without reset: what drives an input from there on
    is seen at the next edge.
    """
    dut.rst.value = 1
    await cycles(dut, reset_cycles)
    dut.rst.value = 0


async def cycles(dut, count):
    """Wait for rising edges of the clock."""
    for _ in range(count):
        await RisingEdge(dut.clk)
