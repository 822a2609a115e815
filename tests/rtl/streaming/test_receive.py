import pytest

from sim.build import build_and_run
from tests.rtl.streaming.scenes import CONFIGS, AxiStreamReceivePath

BENCH = "tests.rtl.streaming.bench_receive"


def run(name, *, tests, **arguments):
    build_and_run(AxiStreamReceivePath(CONFIGS[name]), name=f"receive_{name}", bench=BENCH,
                  tests=tests, arguments={"config": name, **arguments})


def test_damaged_frames():
    run("tiny", tests="damaged_frames", mutations=320, stall=0.2)


def test_resets():
    run("tiny", tests="resets", resets=20)


def test_full_rate():
    run("tiny", tests="full_rate")


@pytest.mark.regress
@pytest.mark.parametrize("name, mutations, stall", [
    ("tiny", 8000, 0.0), ("narrow", 3000, 0.1), ("whole_row", 1500, 0.3), ("wide", 1500, 0.5),
    ("coded_only", 3000, 0.2), ("d256", 1000, 0.0)])
def test_many_damaged_frames(name, mutations, stall):
    run(name, tests="damaged_frames", mutations=mutations, stall=stall)


@pytest.mark.regress
def test_frames_cut_at_every_byte():
    run("tiny", tests="cut_at_every_byte")


@pytest.mark.regress
@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "tiny"])
def test_full_rate_of_every_width(name):
    run(name, tests="full_rate")
