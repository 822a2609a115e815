"""Random problems that several tests draw from."""

import numpy as np
from hypothesis import strategies as st

from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.policy import Policy
from golden.streaming.schedule import Schedule


@st.composite
def problems(draw, most=30):
    """(costs, rule) of up to ``most`` chunks."""
    sizes = draw(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)).filter(
        lambda sizes: np.prod(sizes) <= most))
    grid = Grid(blocks=sizes[0], layers=sizes[1], heads=sizes[2])
    ticks = st.lists(st.integers(1, 60), min_size=grid.count, max_size=grid.count)
    costs = Costs(grid=grid, stream=draw(ticks), compute=draw(ticks))
    return costs, draw(st.sampled_from(Rule))


@st.composite
def wild_schedules(draw, grid, rule):
    """Any division in any order: most break dependencies, as a bad host's might."""
    order = draw(st.permutations(range(grid.count)))
    stages = draw(st.integers(1, 4))
    streamed = draw(st.lists(st.booleans(), min_size=grid.count, max_size=grid.count))
    stage = draw(st.lists(st.integers(0, stages - 1), min_size=grid.count, max_size=grid.count))

    def lists(wanted):
        return tuple(
            tuple(chunk for chunk in order if streamed[chunk] == wanted and stage[chunk] == number)
            for number in range(stages)
        )

    return Schedule(grid=grid, rule=rule, stream=lists(True), compute=lists(False))


policies = st.builds(
    Policy,
    stream_outstanding=st.integers(1, 4), compute_outstanding=st.integers(1, 4),
    scan=st.sampled_from([1, 2, 8, 255]),
    stream_ahead=st.sampled_from([0, 1, 255]), compute_ahead=st.sampled_from([0, 1, 255]),
    retries=st.integers(0, 3), stream_timeout=st.integers(20, 2000),
    compute_timeout=st.integers(20, 2000), refine=st.booleans(), window_log2=st.integers(0, 4),
    margin=st.integers(0, 255), cap=st.integers(0, 5), guard=st.booleans(), idle=st.booleans(),
    period=st.sampled_from([0, 0, 7, 100]),
)
