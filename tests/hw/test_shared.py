"""Once unfolds into its component in Amaranth's simulator, and becomes one module in Verilog."""

import re

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.emit import emit
from hw.platform import module_name
from hw.shared import Once
from hw.stream import Queue
from tests.hw.harness import run_stream_test

LAYOUT = data.StructLayout({"tag": 4, "value": signed(8)})


class Adder(wiring.Component):
    """Combinational, so its module has no clock."""

    def __init__(self, *, addend):
        self._addend = addend
        super().__init__({"a": In(signed(8)), "total": Out(signed(8))})

    @property
    def addend(self):
        return self._addend

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.total.eq(self.a + self.addend)
        return m


class Chain(wiring.Component):
    """Two queues with an adder before each: shared modules with and without a clock."""

    def __init__(self, *, shared, addends=(1, 1)):
        self._shared = shared
        self._addends = addends
        super().__init__({"i": In(stream.Signature(LAYOUT)), "o": Out(stream.Signature(LAYOUT))})

    @property
    def shared(self):
        return self._shared

    @property
    def addends(self):
        return self._addends

    def elaborate(self, platform):
        m = Module()
        wrap = Once if self.shared else (lambda component: component)
        link = wiring.flipped(self.i)
        for index, addend in enumerate(self.addends):
            m.submodules[f"adder_{index}"] = adder = wrap(Adder(addend=addend))
            m.submodules[f"queue_{index}"] = queue = wrap(Queue(LAYOUT, depth=2))
            m.d.comb += [
                adder.a.eq(link.payload.value),
                queue.i.payload.tag.eq(link.payload.tag),
                queue.i.payload.value.eq(adder.total),
                queue.i.valid.eq(link.valid),
                link.ready.eq(queue.i.ready),
            ]
            link = queue.o
        wiring.connect(m, link, wiring.flipped(self.o))
        return m


@pytest.mark.parametrize("shared", [False, True])
def test_unfolds_in_the_simulator(shared):
    items = [{"tag": n % 16, "value": n - 50} for n in range(100)]
    result = run_stream_test(Chain(shared=shared), feeds={"i": items}, sinks={"o": 100}, seed=1,
                             stall_probability=0.3)
    assert result.outputs["o"] == [{**item, "value": item["value"] + 2} for item in items]


def test_is_one_module_in_verilog():
    text, sidecar = emit(Chain(shared=True), name="chain")
    modules = re.findall(r"^module (\S+)\s*\(", text, re.MULTILINE)
    assert sidecar["modules"] == ["Adder__addend_1", modules[1]]
    assert modules[1].startswith("Queue__")
    assert modules[2:] == ["chain"]
    assert len(re.findall(r"^  Adder__addend_1 ", text, re.MULTILINE)) == 2


def test_other_arguments_are_another_module():
    _, sidecar = emit(Chain(shared=True, addends=(1, 2)), name="chain")
    assert sidecar["modules"][:2] == ["Adder__addend_1", "Adder__addend_2"]


def test_name_follows_the_arguments_of_a_component_argument():
    names = [module_name(Once(Adder(addend=addend))) for addend in (1, 1, 2)]
    assert names[0] == names[1] != names[2]


def test_looks_like_its_component():
    queue = Queue(LAYOUT, depth=2)
    wrapper = Once(queue)
    assert wrapper.signature is queue.signature
    assert wrapper.i is queue.i
    assert wrapper.depth == 2
    assert wrapper.component is queue
    with pytest.raises(AttributeError):
        wrapper.absent  # noqa: B018


class Forgetful(wiring.Component):
    def __init__(self, *, width):
        super().__init__({"a": In(width)})


def test_bad_components_are_refused():
    with pytest.raises(TypeError, match="Once component must be a wiring.Component, not 5"):
        Once(5)

    class Top(wiring.Component):
        a: In(4)

        def elaborate(self, platform):
            m = Module()
            m.submodules.inner = Once(Forgetful(width=4))
            return m

    with pytest.raises(TypeError, match="Forgetful must keep its argument 'width' as a property"):
        emit(Top(), name="top")
