"""cocotb bench that carries out the operations of a `sim.attention.Session`."""

import pickle
import time
from pathlib import Path

import cocotb
from cocotb.triggers import SimTimeoutError, with_timeout

from sim.attention.driver import AttentionDriver
from sim.attention.operations import (
    Append,
    Context,
    Counters,
    Memory,
    Query,
    Reset,
    Stopwatch,
    Table,
    Wait,
    Weights,
)
from sim.testbench import CLOCK_NS, arguments, cycles, start


@cocotb.test
async def session(dut):
    path = Path(arguments()["job"])
    job = pickle.loads(path.read_bytes())
    await start(dut)
    try:
        results = await with_timeout(
            carry_out(dut, job), job["timeout_cycles"] * CLOCK_NS, "ns")
    except SimTimeoutError:
        raise AssertionError(f"session not done after {job['timeout_cycles']} cycles") from None
    assert int(dut.memory_violations.value) == 0, "the unit broke a rule of AXI"
    path.with_suffix(".results").write_bytes(pickle.dumps(results))


async def carry_out(dut, job):
    driver = new_driver(dut, job)
    results = [None] * len(job["operations"])
    sent = {}

    def collect():
        for tag, index in sent.items():
            results[index] = driver.results.get(tag)
        sent.clear()

    for index, operation in enumerate(job["operations"]):
        if isinstance(operation, (Append, Query, Weights)):
            sent[driver.send(operation)] = index
            continue
        if isinstance(operation, Reset):
            await cycles(dut, operation.after)
            collect()
            await reset(dut, driver)
            driver = new_driver(dut, job)
            continue
        if isinstance(operation, (Wait, Counters, Stopwatch)):
            await driver.idle()
        if isinstance(operation, Stopwatch):
            results[index] = time.perf_counter()
        if isinstance(operation, Counters):
            results[index] = await driver.read_counters()
        elif isinstance(operation, Context):
            results[index] = await driver.enter_context(
                operation.index, operation.entry, valid=operation.valid)
        elif isinstance(operation, Table):
            await driver.enter_pages(operation.base, operation.pages)
        elif isinstance(operation, Memory):
            for name, value in operation.controls.items():
                getattr(dut, f"memory_{name}").value = value
    await driver.idle()
    collect()
    return results


def new_driver(dut, job):
    return AttentionDriver(dut, job["config"], idle_probability=job["idle_probability"],
                           stall_probability=job["stall_probability"])


async def reset(dut, driver):
    """Drop what the driver still holds, and reset the unit."""
    driver.stop()
    dut.rst.value = 1
    await cycles(dut, 2)
    dut.rst.value = 0
