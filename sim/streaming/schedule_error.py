"""How well golden predicts a run of the route scheduler: makespans of whole jobs.

Link and device are the deterministic models that ``golden.streaming.simulate`` predicts with. What
is left between prediction and hardware is the time that the scheduler takes for its decisions, and
every decision that comes out otherwise because of it.
"""

import json
import random

from golden.streaming.balance import plan
from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.policy import PAPER_POLICY, Policy
from golden.streaming.simulate import Serial
from golden.streaming.traces import step
from hw.config import StreamingConfig
from sim.build import build, run
from sim.streaming.schedule_job import Job
from sim.streaming.schedule_system import TimedRouteScheduler
from sim.tools import BUILD

__all__ = ["TICK_LOG2", "error_jobs", "schedule_error"]

TICK_LOG2 = 4
TICKS = (100, 1000)     # of a chunk, on either route
LATENCY_TICKS = 100
SEED = 1


def error_jobs(jobs, most):
    """Jobs of up to ``most`` chunks: (job, callable that makes fresh models of link and device).

    Both rules, with and without barriers; link and device change their speed on the way.
    """
    rng = random.Random(SEED)
    for number in range(jobs):
        heads, layers = rng.choice([1, 2, 4]), rng.choice([2, 4, 6])
        grid = Grid(blocks=max(1, most // (heads * layers)), layers=layers, heads=heads)
        costs = Costs(grid=grid, **{
            route: [rng.randint(*TICKS) for _ in range(grid.count)]
            for route in ("stream", "compute")})
        rule = list(Rule)[number % 2]
        policy = PAPER_POLICY if number % 4 == 3 else Policy()
        traces = [step(rng.uniform(0.6, 1.4), at=grid.count * TICKS[1] // 8,
                       factor=rng.choice([0.3, 1, 2])) for _ in range(2)]

        def sides(costs=costs, traces=traces):
            return (Serial(traces[0], costs.stream, latency=LATENCY_TICKS),
                    Serial(traces[1], costs.compute))

        yield Job(schedule=plan(costs, rule, shares=(0.125, 0.25)), costs=costs,
                  policy=policy), sides


def schedule_error(jobs=16, most=96):
    """Run jobs on the emitted scheduler and compare with the prediction.

    Returns
    -------
    dict
        ``streaming.model.cycle_error``: the largest relative error of a makespan;
        ``streaming.scheduler.event_cycles``: the most cycles that an event has taken, of 32
        candidates looked at per search.
    """
    config = StreamingConfig(head_dim=32, bus_bytes=8, chunks=256, outstanding=4)
    model = build(TimedRouteScheduler(config), name="schedule_error")
    output = BUILD / "bench" / "streaming" / f"schedule_error-{jobs}-{most}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    run(model, bench="sim.streaming.schedule_bench", seed=SEED,
        arguments={"jobs": jobs, "most": most, "output": str(output)})
    runs = json.loads(output.read_text(encoding="utf-8"))
    return {
        "streaming.model.cycle_error": max(
            abs(item["measured"] - item["predicted"]) / item["predicted"] for item in runs),
        "streaming.scheduler.event_cycles": max(item["longest"] for item in runs),
    }
