"""The helper that runs benches fails when a bench does, and when it did nothing."""

import os
import subprocess
import sys

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from hw.stream import Queue, SkidBuffer
from sim.build import SimulationError, build, build_and_run, run
from sim.tools import BUILD, ROOT

BENCH = "tests.rtl.bench_nothing"


@pytest.fixture(scope="module")
def model():
    return build(Queue(8, depth=2), name="queue")


@pytest.mark.parametrize("tests, message", [
    ("absent", "no test ran"),
    ("fails", "failed: .*fails"),
    ("never_ends", "failed: .*never_ends"),
])
def test_what_did_not_pass_fails(model, tests, message):
    with pytest.raises(SimulationError, match=message):
        run(model, bench=BENCH, tests=tests)


def test_a_bench_that_is_not_there_fails(model):
    with pytest.raises(SimulationError, match="simulation ended early|no test ran"):
        run(model, bench="tests.rtl.bench_absent")


def test_seed_is_printed(model, capsys):
    outcome = run(model, bench=BENCH, tests="passes", seed=77)
    assert len(outcome.passed) == 1
    assert "1 passed, seed 77" in capsys.readouterr().out


def test_model_is_built_once(model, capsys):
    again = build(Queue(8, depth=2), name="queue")
    assert again.folder == model.folder
    assert "built" not in capsys.readouterr().out
    assert build(Queue(8, depth=3), name="queue").folder != model.folder


class Around(wiring.Component):
    """A top that is made with the unit inside, as benches with a memory are."""

    def __init__(self, unit):
        self._unit = unit
        super().__init__(unit.signature)

    @property
    def unit(self):
        return self._unit

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = self.unit
        wiring.connect(m, self.unit.i, wiring.flipped(self.i))
        wiring.connect(m, self.unit.o, wiring.flipped(self.o))
        return m


def test_top_around_a_unit_is_emitted_once(monkeypatch):
    model = build(Around(Queue(8, depth=2)), name="around")
    monkeypatch.delattr("sim.build.write_unit")
    assert build(Around(Queue(8, depth=2)), name="around").folder == model.folder
    with pytest.raises(NameError, match="write_unit"):
        build(Around(Queue(8, depth=31)), name="around")


def test_source_that_does_not_build_fails(tmp_path):
    source = tmp_path / "broken.v"
    source.write_text("module broken(input wire clk; endmodule\n", encoding="utf-8")
    with pytest.raises(SimulationError, match="broken does not build"):
        build(name="broken", sources=[source])


def test_waves():
    outcome = build_and_run(SkidBuffer(8), name="skid_buffer", bench=BENCH, tests="passes",
                            waves=True)
    dump, = outcome.folder.glob("dump.*")
    assert dump.stat().st_size > 100
    assert outcome.folder.is_relative_to(BUILD)


def test_model_runs_inside_python():
    """As on machines whose Python has no shared library."""
    subprocess.run(
        [sys.executable, "-c",
         "from hw.stream import Queue; from sim.build import build_and_run\n"
         f"build_and_run(Queue(8, depth=2), name='queue', bench='{BENCH}', tests='passes')"],
        check=True, cwd=ROOT, env={**os.environ, "KVS_HOSTED": "1"})
