"""The memory does what the few lines of Python in sram_model say."""

import random

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from sim.testbench import arguments, cycles, reset, start
from tests.hw.sram_model import expected_reads, make_operations


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def follows_the_model(dut):
    geometry = arguments()
    operations = make_operations(random.getrandbits(32), count=2000, **geometry)
    compared = 0
    await start(dut)
    for operation, expected in zip(operations, expected_reads(operations, **geometry), strict=True):
        for name, value in operation.items():
            getattr(dut, name).value = value
        await RisingEdge(dut.clk)
        await ReadOnly()
        if expected is not None:
            assert dut.read_data.value.to_unsigned() == expected
            compared += 1
        await FallingEdge(dut.clk)
    assert compared > 1500


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def keeps_its_words_through_a_reset(dut):
    await start(dut)
    dut.write_en.value = (1 << len(dut.write_en)) - 1
    dut.write_addr.value = 1
    dut.write_data.value = 0x5A
    await cycles(dut, 1)
    dut.write_en.value = 0
    await reset(dut)
    dut.read_en.value = 1
    dut.read_addr.value = 1
    await cycles(dut, 2)
    assert dut.read_data.value.to_unsigned() == 0x5A
