import pytest
from amaranth.hdl import ClockDomain, DomainRenamer, Module, signed
from amaranth.lib import data, wiring
from amaranth.sim import Simulator

from hw.emit import emit
from hw.platform import VerilogPlatform, to_verilog
from hw.sram import Sram
from tests.hw.sram_model import expected_reads, make_operations


@pytest.mark.parametrize("width, depth, granularity", [(8, 2, None), (24, 13, 8), (16, 64, 1)])
def test_sram_in_the_simulator(width, depth, granularity):
    dut = Sram(width, depth=depth, granularity=granularity)
    geometry = {"depth": depth, "width": width, "granules": width // (granularity or width)}
    operations = make_operations(depth, count=500, **geometry)
    reads = []

    async def drive(ctx):
        for operation in operations:
            for name, value in operation.items():
                port, signal = name.split("_")
                ctx.set(getattr(getattr(dut, port), signal), value)
            await ctx.tick()
            reads.append(ctx.get(dut.read.data))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    expected = expected_reads(operations, **geometry)
    assert [(r, e) for r, e in zip(reads, expected, strict=True) if e is not None and r != e] == []
    assert sum(e is not None for e in expected) > 400


def test_sram_keeps_the_shape_of_its_words():
    layout = data.ArrayLayout(data.StructLayout({"exponent": 8, "sign": signed(2)}), 4)
    dut = Sram(layout, depth=8, granularity=1)
    assert dut.write.data.shape() == layout
    assert dut.read.data.shape() == layout
    assert len(dut.write.en) == 4
    assert dut.width == 40


@pytest.mark.parametrize("depth, is_macro", [(255, False), (256, True)])
def test_only_large_memories_become_the_macro(depth, is_macro):
    text, sidecar = emit(Sram(16, depth=depth), name="sram")
    assert sidecar["modules"] == (["kvs_sram"] if is_macro else [])
    assert ("module kvs_sram" in text) == is_macro


def test_domain_renamer_reaches_the_macro():
    class Top(wiring.Component):
        fast_clk: wiring.In(1)
        value: wiring.Out(16)

        def elaborate(self, platform):
            m = Module()
            m.domains.fast = fast = ClockDomain(reset_less=True)
            m.submodules.sram = DomainRenamer("fast")(sram := Sram(16, depth=256))
            m.d.comb += [fast.clk.eq(self.fast_clk), self.value.eq(sram.read.data)]
            return m

    text = to_verilog(Top(), "top", VerilogPlatform())
    assert ".clk(fast_clk)" in text


def test_bad_arguments():
    with pytest.raises(ValueError, match="Sram depth must be at least 2, not 1"):
        Sram(8, depth=1)
    with pytest.raises(TypeError, match="Sram depth must be an integer, not '4'"):
        Sram(8, depth="4")
