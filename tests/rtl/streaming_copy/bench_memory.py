"""Copies on the simulation memory: faults, aborts, resets, full rate."""

import cocotb
from cocotb.triggers import RisingEdge

from golden.streaming.copy import CopyError
from sim.memory import MemoryFault
from sim.memory_control import MemoryControl
from sim.testbench import cycles, reset, start
from tests.rtl.streaming_copy.bench import CopyBench
from tests.rtl.streaming_copy.scenes import SIZE


async def begin(dut, bench, **settings):
    control = MemoryControl(dut)
    await start(dut)
    control.configure(**settings)
    await control.load(bench.contents)
    bench.connect()
    return control


async def compare(bench, control):
    await bench.run()
    assert await control.dump() == bench.expected
    control.check()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(shuffle=[False, True], latency=[1, 60])
async def commands_of_every_kind(dut, shuffle, latency):
    bench = CopyBench(dut, stall=0.3 if shuffle else 0.0)
    for _ in range(3):
        bench.add(10)
        bench.add_chain(10)
    control = await begin(dut, bench, read_latency=latency, write_latency=latency, shuffle=shuffle)
    await compare(bench, control)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(fault=["READ_SLVERR", "READ_DECERR", "WRITE_SLVERR", "WRITE_DECERR"],
                    shuffle=[False, True])
async def faults_do_not_reach_the_next_command(dut, fault, shuffle):
    is_read = fault.startswith("READ")
    span = (SIZE // 8, SIZE // 4) if is_read else (SIZE // 2 + 2000, SIZE // 2 + 8000)
    bench = CopyBench(dut, stall=0.2, **{"read_faults" if is_read else "write_faults": span})
    want = CopyError.READ if is_read else CopyError.WRITE
    while want not in {result.error for result in bench.scene.results}:
        bench.add(10)
    bench.add_chain(20)
    control = await begin(dut, bench, read_latency=5, write_latency=5, shuffle=shuffle)
    control.set_fault(MemoryFault[fault], *span)
    await compare(bench, control)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(after=[20, 61, 150])
async def aborted_commands_leave_no_trace_outside(dut, after):
    """All commands are answered, the bus is idle, and what comes after is right."""
    bench = CopyBench(dut, stall=0.1)
    bench.add(30, share_bad=0)
    bench.add_chain(30, share_bad=0)
    control = await begin(dut, bench, read_latency=30, write_latency=30)
    bench.send()
    await cycles(dut, after)
    dut.abort.value = 1
    done = await bench.sinks["o_done"].receive(len(bench.resident) + 1)
    await cycles(dut, 400)
    dut.abort.value = 0
    await RisingEdge(dut.clk)
    assert not dut.busy.value
    errors = [item["error"] for item in done]
    assert set(errors) <= {CopyError.NONE, CopyError.ABORTED}
    assert CopyError.ABORTED in errors
    found = await control.dump()
    whole, initial = bench.expected, bench.contents
    assert all(byte in (whole[at], initial[at]) for at, byte in enumerate(found))
    # The same again, from where memory is now.
    bench.stop()
    again = CopyBench(dut, stall=0.1)
    again.add(10)
    again.add_chain(10)
    await control.load(again.contents)
    again.connect()
    await compare(again, control)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def starts_over_after_resets_in_mid_burst(dut):
    bench = CopyBench(dut)
    bench.add(20)
    bench.add_chain(20)
    await begin(dut, bench, read_latency=20, write_latency=20)
    for after in (12, 31, 60, 77, 140):
        bench.send()
        await cycles(dut, after)
        bench.stop()
        await reset(dut)
        bench = CopyBench(dut)
        bench.add(20)
        bench.add_chain(20)
        control = MemoryControl(dut)
        await control.load(bench.contents)
        bench.connect()
    await compare(bench, control)
