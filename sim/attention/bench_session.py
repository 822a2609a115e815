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
    Raw,
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
    check_bus(dut)
    path.with_suffix(".results").write_bytes(pickle.dumps(results))


async def carry_out(dut, job):
    driver = AttentionDriver(dut, job["config"], idle_probability=job["idle_probability"],
                             stall_probability=job["stall_probability"])
    results = [None] * len(job["operations"])
    sent = {}

    def collect():
        for tag, index in sent.items():
            results[index] = driver.results.get(tag)
        sent.clear()

    for index, operation in enumerate(job["operations"]):
        if isinstance(operation, (Append, Query, Raw, Weights)):
            sent[driver.send(operation)] = index
            continue
        if isinstance(operation, Reset):
            await driver.sink.receive(len(driver.sink.items) + operation.beats)
            await cycles(dut, operation.after)
            collect()
            check_bus(dut)
            await driver.reset()
            continue
        if isinstance(operation, (Wait, Counters, Stopwatch)):
            await driver.idle()
        if isinstance(operation, Stopwatch):
            results[index] = time.perf_counter()
        if isinstance(operation, Counters):
            results[index] = await driver.read_counters(clear=operation.clear)
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


def check_bus(dut):
    """The memory counts from reset to reset what a master must not do."""
    violations = int(dut.memory_violations.value)
    assert violations == 0, f"the unit broke rules of AXI {violations} times"
