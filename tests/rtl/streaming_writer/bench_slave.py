"""Pages written to a slave that is not ours."""

import random

import cocotb
from cocotbext.axi import AxiRamWrite, AxiWriteBus

from sim.stream import StreamMonitor
from sim.testbench import cycles, start
from tests.rtl.streaming_writer.bench import WriterBench
from tests.rtl.streaming_writer.scenes import SIZE


def pauses(probability, seed):
    generator = random.Random(seed)
    while True:
        yield generator.random() < probability


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3], pause=[0.0, 0.5])
async def chunks_of_every_kind(dut, stall, pause):
    """Random stalls everywhere; on the channel of answers they are the slave's latency."""
    bench = WriterBench(dut, stall=stall)
    scene = bench.scene
    await start(dut)
    ram = AxiRamWrite(AxiWriteBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=SIZE)
    ram.log.setLevel("WARNING")
    ram.write(0, bench.contents)
    if pause:
        for channel, share in ((ram.aw_channel, pause), (ram.w_channel, pause),
                               (ram.b_channel, 0.8)):
            channel.set_pause_generator(pauses(share, random.getrandbits(32)))
    requests = StreamMonitor(dut, "m_axi_aw")
    StreamMonitor(dut, "m_axi_w")
    bench.connect()
    for _ in range(20):
        scene.random_chunk()
        scene.other_burst()
    await bench.run()
    await cycles(dut, 30)
    assert ram.read(0, SIZE) == bytes(scene.expected)
    ours = [(item["addr"], item["len"] + 1) for item in requests.items if item["id"] == 0]
    assert ours == [(burst.address, burst.beats(bench.config.bus_bytes))
                    for burst in scene.bursts]
