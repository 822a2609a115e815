"""Random jobs for the route scheduler, and routes that fail now and then."""

from golden.streaming.balance import plan
from golden.streaming.baselines import all_stream
from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.policy import NEVER, Policy, Route
from golden.streaming.schedule import Schedule
from golden.streaming.simulate import Serial
from golden.streaming.traces import constant
from sim.streaming.schedule_job import Job

__all__ = ["World", "random_job"]


def random_policy(rng, **fixed):
    return Policy(**{
        "stream_outstanding": rng.randint(1, 4), "compute_outstanding": rng.randint(1, 4),
        "scan": rng.choice([1, 2, 8, 32, 255]),
        "stream_ahead": rng.choice([0, 1, 255]), "compute_ahead": rng.choice([0, 1, 255]),
        "retries": rng.choice([0, 0, 1, 3]), "stream_timeout": rng.randint(40, 2000),
        "compute_timeout": rng.randint(40, 2000), "refine": rng.random() < 0.8,
        "window_log2": rng.randint(0, 4), "margin": rng.choice([0, 13, 255]),
        "cap": rng.choice([0, 1, 5, 255]), "guard": rng.random() < 0.5, "idle": rng.random() < 0.5,
        "period": rng.choice([0, 0, 0, 40, 200]),
        **fixed,
    })


def random_grid(rng, most):
    while True:
        grid = Grid(blocks=rng.randint(1, 6), layers=rng.randint(1, 5), heads=rng.randint(1, 4))
        if 2 <= grid.count <= most:
            return grid


def wild_schedule(rng, grid, rule):
    """Any division in any order: most break dependencies, as a bad host's might."""
    stages = rng.randint(1, 4)
    chunks = rng.sample(range(grid.count), grid.count)
    lists = [[[] for _ in range(stages)] for _ in Route]
    for chunk in chunks:
        lists[rng.randrange(2)][rng.randrange(stages)].append(chunk)
    return Schedule(grid=grid, rule=rule, stream=lists[0], compute=lists[1])


def random_job(rng, most=30, *, kind=None, has_deadlines=None, longest=60, **policy):
    """A job of up to ``most`` chunks, planned, wild, or all streamed: then a chunk that fails has a
    chain of states to compute."""
    grid, rule = random_grid(rng, most), rng.choice(list(Rule))
    costs = Costs(grid=grid, stream=[rng.randint(1, longest) for _ in range(grid.count)],
                  compute=[rng.randint(1, longest) for _ in range(grid.count)])
    match kind or rng.choice(["planned", "planned", "wild", "wild", "streamed"]):
        case "planned":
            schedule = plan(costs, rule, shares=(0.25, 0.5))
        case "wild":
            schedule = wild_schedule(rng, grid, rule)
        case "streamed":
            schedule = all_stream(costs, rule)
    deadlines = None
    if rng.random() < 0.4 if has_deadlines is None else has_deadlines:
        deadlines = [rng.choice([NEVER, rng.randint(0, 20 * longest)]) for _ in range(grid.count)]
    return Job(schedule=schedule, costs=costs, policy=random_policy(rng, **policy),
               deadlines=deadlines)


class World:
    """Link and device that answer after the predicted time, or not so.

    Parameters
    ----------
    rng : random.Random
    job : Job
    faults : (float, float)
        Share of answers that are bad, by route; as many never come, and as many come twice.
    rates : (float, float)
        Speed of each route, as a share of what is predicted.
    """

    def __init__(self, rng, job, faults=(0.0, 0.0), rates=(1, 1)):
        self.rng = rng
        self.faults = faults
        self.sides = (Serial(constant(rates[0]), job.costs.stream),
                      Serial(constant(rates[1]), job.costs.compute))

    @classmethod
    def at_random(cls, rng, job):
        return cls(rng, job, [rng.choice([0, 0.05, 0.3]) for _ in Route],
                   [rng.choice([0.25, 1, 1, 4]) for _ in Route])

    def request(self, now, route, chunk):
        """(tick, good) of each answer to a request; ``now`` is its tick."""
        time = self.sides[route].request(now, chunk).time
        draw, fault = self.rng.random(), self.faults[route]
        if draw < fault:
            return [(time, False)]
        if draw < 2 * fault:
            return []
        if draw < 3 * fault:
            return [(time, True), (time + self.rng.randint(0, 50), self.rng.random() < 0.5)]
        return [(time, True)]

