import pytest

from sim.build import build_and_run
from sim.streaming.schedule_error import schedule_error
from sim.streaming.schedule_system import TimedRouteScheduler
from tests.rtl.streaming_scheduler.scenes import CONFIGS

BENCH = "tests.rtl.streaming_scheduler.bench_scheduler"


def run(name, *, tests, seed=None, **arguments):
    build_and_run(TimedRouteScheduler(CONFIGS[name]), name=f"scheduler_{name}", bench=BENCH,
                  seed=seed, tests=tests, arguments={"config": name, **arguments})


def test_random_jobs():
    run("small", tests="random_jobs", jobs=36, most=24)


def test_the_end_of_jobs():
    run("small", tests="aborts|refusals|dead_ports|held_cancel|deadlines", jobs=8, most=24)


def test_golden_predicts_a_run():
    figures = schedule_error(jobs=3, most=32)
    assert figures["streaming.model.cycle_error"] < 0.02
    assert figures["streaming.scheduler.event_cycles"] == 175


@pytest.mark.regress
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_random_jobs(seed):
    run("small", tests="random_jobs|aborts", seed=seed, jobs=150, most=40)


@pytest.mark.regress
@pytest.mark.parametrize("seed", range(2, 5))
def test_many_large_jobs(seed):
    run("wide", tests="random_jobs|aborts", seed=seed, jobs=60, most=400)


@pytest.mark.regress
def test_golden_predicts_long_runs():
    figures = schedule_error()
    assert figures["streaming.model.cycle_error"] < 0.02
    assert figures["streaming.scheduler.event_cycles"] == 235
