"""The harness must catch a unit that breaks the rules."""

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from tests.hw.harness import StreamRuleError, plain, run_stream_test


class Faulty(wiring.Component):
    """Passes a stream on, with one fault."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def elaborate(self, platform):
        m = Module()
        counter = Signal(8)
        m.d.sync += counter.eq(counter + 1)
        m.d.comb += [
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
        ]
        match self.fault:
            case "changes":
                m.d.comb += self.o.payload.eq(self.i.payload ^ counter)
            case "drops":
                m.d.comb += self.o.valid.eq(self.i.valid & counter[0])
                m.d.comb += self.i.ready.eq(self.o.ready & counter[0])
            case "waits":
                m.d.comb += self.o.valid.eq(self.i.valid & self.o.ready)
            case "repeats":
                m.d.comb += self.i.ready.eq(self.o.ready & (counter != 3))
            case "loses":
                m.d.comb += self.o.valid.eq(self.i.valid & (counter != 3))
        return m


@pytest.mark.parametrize("fault, error, message", [
    ("changes", StreamRuleError, "changed its payload"),
    ("drops", StreamRuleError, "dropped valid"),
    ("waits", TimeoutError, "o gave 0 of 20"),
])
def test_rules_are_checked(fault, error, message):
    with pytest.raises(error, match=message):
        for seed in range(20):
            run_stream_test(Faulty(fault), feeds={"i": [5] * 20}, sinks={"o": 20}, seed=seed,
                            stall_probability=0.5, timeout_cycles=500)


@pytest.mark.parametrize("fault, error, message", [
    ("repeats", StreamRuleError, "an item more than the 20 expected"),
    ("loses", TimeoutError, "o gave 19 of 20"),
])
def test_count_is_checked(fault, error, message):
    with pytest.raises(error, match=message):
        run_stream_test(Faulty(fault), feeds={"i": range(20)}, sinks={"o": 20}, seed=0,
                        timeout_cycles=500)


def test_sink_without_count_takes_what_comes():
    result = run_stream_test(Faulty(None), feeds={"i": range(20)}, sinks={"o": None}, seed=0)
    assert result.outputs["o"] == list(range(20))
    assert result.cycles == 20 + 16


def test_plain_values():
    class Kind(enum.Enum, shape=2):
        NONE = 0
        SOME = 1

    layout = data.StructLayout({
        "kind": Kind, "rows": data.ArrayLayout(data.StructLayout({"x": signed(4)}), 2)})
    value = {"kind": Kind.SOME, "rows": [{"x": -3}, {"x": 7}]}
    assert plain(layout.const(value)) == value
    assert plain(5) == 5


def test_stall_probability_is_checked():
    with pytest.raises(ValueError, match=r"stall_probability must be in \[0, 1\), not 1"):
        run_stream_test(Faulty(None), feeds={}, sinks={}, seed=0, stall_probability=1)
