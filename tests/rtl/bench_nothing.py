"""Tests that fail, and one that passes, for the tests of the helper that runs benches."""

import cocotb

from sim.testbench import cycles, start


@cocotb.test(timeout_time=1, timeout_unit="us")
async def fails(dut):
    await start(dut)
    await cycles(dut, 3)
    raise AssertionError("on purpose")


@cocotb.test(timeout_time=1, timeout_unit="us")
async def never_ends(dut):
    await start(dut)
    await cycles(dut, 1000)


@cocotb.test(timeout_time=1, timeout_unit="us")
async def passes(dut):
    await start(dut)
