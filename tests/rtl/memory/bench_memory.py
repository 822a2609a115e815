"""The simulation memory keeps what its header promises."""

import random
from itertools import pairwise

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBurstType, AxiBus, AxiMaster

from sim.memory import MemoryFault
from sim.memory_control import MemoryControl
from sim.stream import StreamSink, StreamSource
from sim.testbench import cycles, start

SIZE = 1 << 16
WIDTH = 16


class Bench:
    def __init__(self, dut):
        self.dut = dut
        self.control = MemoryControl(dut, "control")

    async def start(self, **settings):
        await start(self.dut)
        self.control.configure(**settings)
        self.contents = random.randbytes(SIZE)
        await self.control.load(self.contents)
        await cycles(self.dut, 2)

    def connect_streams(self):
        self.ar = StreamSource(self.dut, "axi_ar")
        self.aw = StreamSource(self.dut, "axi_aw")
        self.w = StreamSource(self.dut, "axi_w")
        self.r = StreamSink(self.dut, "axi_r")
        self.b = StreamSink(self.dut, "axi_b")

    def word(self, address):
        return int.from_bytes(self.contents[address:address + WIDTH], "little")


def request(address, beats, identity=0):
    return {"id": identity, "addr": address, "len": beats - 1, "size": 4, "burst": "INCR"}


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(latency=[1, 2, 20])
async def reads_with_the_latency_set_and_without_bubbles(dut, latency):
    bench = Bench(dut)
    await bench.start(read_latency=latency)
    bench.connect_streams()
    taken = []

    async def watch_requests():
        while True:
            await RisingEdge(dut.clk)
            if dut.axi_arvalid.value and dut.axi_arready.value:
                taken.append(int(cocotb.simtime.get_sim_time("ns")) // 10)

    cocotb.start_soon(watch_requests())
    bursts = [request(64 * n, 4, n % 4) for n in range(30)]
    bench.ar.send(bursts)
    beats = await bench.r.receive(120)
    assert taken == list(range(taken[0], taken[0] + 30))
    assert bench.r.times == list(range(taken[0] + latency, taken[0] + latency + 120))
    assert beats == [{"id": n // 4 % 4, "data": bench.word(16 * n), "resp": 0,
                      "last": int(n % 4 == 3)} for n in range(120)]
    bench.control.check()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def interleaves_ids_and_keeps_the_order_of_each(dut):
    bench = Bench(dut)
    await bench.start(read_latency=3, shuffle=True)
    bench.connect_streams()
    addresses = [[random.randrange(SIZE // 64) * 64 for _ in range(20)] for _ in range(3)]
    bench.ar.send([request(addresses[n % 3][n // 3], 4, n % 3) for n in range(60)])
    beats = await bench.r.receive(240)
    for identity in range(3):
        assert [beat["data"] for beat in beats if beat["id"] == identity] == [
            bench.word(address + 16 * n) for address in addresses[identity] for n in range(4)]
    switches = sum(first["id"] != second["id"] for first, second in pairwise(beats))
    assert switches > 100
    assert bench.r.times[-1] - bench.r.times[0] > 250


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(fault=["READ_SLVERR", "READ_DECERR", "READ_SHORT", "READ_LONG"])
async def answers_faults_in_the_window_only(dut, fault):
    bench = Bench(dut)
    await bench.start()
    bench.connect_streams()
    bench.control.set_fault(MemoryFault[fault], 0x100, 0x200)
    bench.ar.send([request(0xF0, 1), request(0x100, 2), request(0x1F0, 1), request(0x200, 2)])
    responses = {"READ_SLVERR": 2, "READ_DECERR": 3}
    lengths = {"READ_SHORT": (1, 1), "READ_LONG": (3, 2)}.get(fault, (2, 1))
    faulty = [(responses.get(fault, 0), int(n == length - 1))
              for length in lengths for n in range(length)]
    expected = [(0, 1), *faulty, (0, 0), (0, 1)]
    beats = await bench.r.receive(len(expected))
    assert [(beat["resp"], beat["last"]) for beat in beats] == expected


@cocotb.test(timeout_time=100, timeout_unit="us")
async def refuses_addresses_beyond_its_size(dut):
    bench = Bench(dut)
    await bench.start()
    bench.connect_streams()
    bench.ar.send([request(SIZE, 1)])
    bench.aw.send([request(SIZE + 16, 1)])
    bench.w.send([{"data": 1, "strb": 0xFFFF, "last": 1}])
    assert (await bench.r.receive(1))[0]["resp"] == 3
    assert (await bench.b.receive(1))[0]["resp"] == 3
    assert await bench.control.dump() == bench.contents


@cocotb.test(timeout_time=100, timeout_unit="us")
async def answers_writes_late_and_stores_none_that_fail(dut):
    bench = Bench(dut)
    await bench.start(write_latency=7)
    bench.connect_streams()
    bench.control.set_fault(MemoryFault.WRITE_SLVERR, 0x40, 0x60)
    bench.aw.send([request(0x20, 2, 1), request(0x40, 2, 2)])
    bench.w.send([{"data": (1 << 128) - 1, "strb": 0x00F0, "last": n % 2} for n in range(4)])
    answers = await bench.b.receive(2)
    assert answers == [{"id": 1, "resp": 0}, {"id": 2, "resp": 2}]
    assert bench.b.times[1] - bench.b.times[0] == 2
    expected = bytearray(bench.contents)
    for address in (0x24, 0x34):
        expected[address:address + 4] = b"\xff" * 4
    assert await bench.control.dump() == bytes(expected)
    assert bench.control.write_beats == 4


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(
    ("bad", [{"burst": "WRAP"}, {"size": 2}, {"addr": 0xFF0, "len": 1}]))
async def counts_bursts_that_it_does_not_take(dut, bad):
    bench = Bench(dut)
    await bench.start()
    bench.connect_streams()
    bench.ar.send([{**request(0x20, 1), **bad}])
    await bench.r.receive(bad.get("len", 0) + 1)
    await cycles(dut, 2)
    assert dut.control_violations.value.to_unsigned() == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(shuffle=[False, True])
async def serves_an_independent_master(dut, shuffle):
    bench = Bench(dut)
    dut.control_seed.value = 7
    await bench.start(read_latency=5, write_latency=3, shuffle=shuffle)
    master = AxiMaster(AxiBus.from_prefix(dut, "axi"), dut.clk, dut.rst)
    expected = bytearray(bench.contents)
    for _ in range(30):
        address, length = random.randrange(SIZE - 300), random.randrange(1, 300)
        contents = random.randbytes(length)
        await master.write(address, contents, burst=AxiBurstType.INCR)
        expected[address:address + length] = contents
        address, length = random.randrange(SIZE - 300), random.randrange(1, 300)
        answer = await master.read(address, length)
        assert answer.data == expected[address:address + length]
    assert await bench.control.dump() == bytes(expected)
    await bench.control.write(0x50, bytes(range(32)))
    assert await bench.control.read(0x53, 9) == bytes(range(3, 12))
    bench.control.check()
