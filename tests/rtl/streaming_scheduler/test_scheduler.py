import pytest

from sim.build import build_and_run
from tests.rtl.streaming_scheduler.scenes import CONFIGS, TimedRouteScheduler

BENCH = "tests.rtl.streaming_scheduler.bench_scheduler"


def run(name, *, tests, **arguments):
    build_and_run(TimedRouteScheduler(CONFIGS[name]), name=f"scheduler_{name}", bench=BENCH,
                  tests=tests, arguments={"config": name, **arguments})


def test_random_jobs():
    run("small", tests="random_jobs", jobs=60, most=24)


def test_aborts():
    run("small", tests="aborts", jobs=15, most=24)
