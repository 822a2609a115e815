"""The run-time scheduler: invariants under any schedule, policy and fault, checked from its log."""

from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from golden.streaming.balance import plan
from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.policy import NEVER, PAPER_POLICY, Decision, Policy, Route
from golden.streaming.runtime import Scheduler
from golden.streaming.schedule import lower_bound
from golden.streaming.simulate import Faulty, Serial, simulate
from golden.streaming.tasks import Task
from golden.streaming.traces import Trace, constant
from tests.golden.streaming.cases import policies, problems, wild_schedules

REQUESTS = {Decision.REQUEST_STREAM, Decision.REQUEST_COMPUTE, Decision.REQUEST_STATE}
MOVES = {Decision.MOVE_TO_STREAM, Decision.MOVE_TO_COMPUTE}


class Watched(Scheduler):
    """A scheduler that checks its own table after each event."""

    def react(self, *arguments):
        super().react(*arguments)
        pending = (Task.WAIT, Task.FLY)
        for route in (self.stream, self.compute):
            assert route.load == sum(
                ticks for task, ticks in zip(route.tasks, route.ticks, strict=True)
                if task in pending
            )
            assert set(route.flying) == {
                chunk for chunk, task in enumerate(route.tasks) if task == Task.FLY}
            assert len(set(route.queue)) == len(route.queue)
        for stream, compute in zip(self.table.stream, self.table.compute, strict=True):
            # A chunk may wait for its state while the link brings it, but never on both routes.
            assert not (stream == Task.WAIT and compute in pending)
            assert not (stream == Task.FLY and compute == Task.FLY)


def check_log(run, schedule, policy):
    """What holds for each run, read from the log alone."""
    grid, rule = schedule.grid, schedule.rule
    counts = defaultdict(Counter)
    present, computed = set(), set()
    flying = {Route.STREAM: set(), Route.COMPUTE: set()}
    moves = time = 0
    for record in run.log:
        assert record.time >= time
        time, decision, chunk = record
        counts[decision][chunk] += 1
        if decision == Decision.STAGE:
            moves = 0
        elif decision in MOVES:
            moves += 1
            assert policy.refine and moves <= policy.cap
        elif decision == Decision.REQUEST_STREAM:
            flying[Route.STREAM].add(chunk)
            assert chunk not in present | flying[Route.COMPUTE]
        elif decision in REQUESTS:
            flying[Route.COMPUTE].add(chunk)
            assert chunk not in flying[Route.STREAM]
            assert present.issuperset(grid.needs_present(chunk, rule))
            assert computed.issuperset(grid.needs_computed(chunk, rule))
            assert (chunk in present) == (decision == Decision.REQUEST_STATE)
        elif decision in (Decision.PRESENT, Decision.STATE_DONE):
            if chunk in flying[Route.COMPUTE]:
                computed.add(chunk)
                flying[Route.COMPUTE].remove(chunk)
            else:
                assert decision == Decision.PRESENT
                flying[Route.STREAM].remove(chunk)
            assert (chunk in present) == (decision == Decision.STATE_DONE)
            present.add(chunk)
        elif decision in (Decision.STREAM_FAILED, Decision.STREAM_LATE):
            flying[Route.STREAM].discard(chunk)  # late ones may not have been requested
        elif decision == Decision.COMPUTE_FAILED:
            flying[Route.COMPUTE].remove(chunk)
    assert not flying[Route.STREAM] and not flying[Route.COMPUTE]
    once = counts[Decision.PRESENT] + counts[Decision.LOST]
    assert once == Counter(range(grid.count))
    assert sorted(counts[Decision.LOST]) == sorted(run.lost)
    assert set(run.present) == set(counts[Decision.PRESENT])
    assert all((counts[Decision.MOVE_TO_STREAM] + counts[Decision.MOVE_TO_COMPUTE])[chunk] <= 1
               for chunk in range(grid.count))
    streamed, state = counts[Decision.REQUEST_STREAM], counts[Decision.REQUEST_STATE]
    assert max(streamed.values(), default=0) <= 1 + policy.retries
    assert max((counts[Decision.REQUEST_COMPUTE] + state).values(), default=0) <= 1
    assert run.makespan <= time


def sides(costs, rates=(Trace([0], [1 << 16]), Trace([0], [1 << 16])), latency=0):
    return (Serial(rates[0], costs.stream, latency), Serial(rates[1], costs.compute))


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_planned_run_without_faults(data):
    costs, rule = data.draw(problems())
    policy = data.draw(policies)
    schedule = plan(costs, rule, shares=(0.25, 0.5))
    scheduler = Watched(schedule, costs, Policy(**{
        **vars(policy), "stream_timeout": NEVER, "compute_timeout": NEVER}))
    run = simulate(scheduler, *sides(costs))
    check_log(run, schedule, scheduler.policy)
    assert run.lost == []
    assert sum(run.count(decision) for decision in REQUESTS) == costs.grid.count
    assert run.count(Decision.FALL_BACK) == run.count(Decision.RECOVER) == 0
    assert run.makespan >= lower_bound(costs, rule)


@settings(deadline=None, max_examples=100)
@given(problems())
def test_undisturbed_and_unrefined_the_plan_takes_its_predicted_time(problem):
    costs, rule = problem
    schedule = plan(costs, rule, shares=(0.25, 0.5))
    policy = Policy(refine=False, stream_outstanding=1, compute_outstanding=1, scan=1)
    run = simulate(Scheduler(schedule, costs, policy), *sides(costs))
    assert run.makespan == schedule.makespan(costs)
    assert {chunk for chunk, (_, route) in run.present.items() if route == Route.STREAM} == set(
        schedule.stream_list)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_schedule_under_any_fault_ends_with_each_chunk_accounted_for(data):
    costs, rule = data.draw(problems(most=16))
    schedule = data.draw(wild_schedules(costs.grid, rule))
    policy = data.draw(policies)
    some = st.sets(st.integers(0, costs.grid.count - 1))
    deadlines = data.draw(st.one_of(st.none(), st.lists(
        st.one_of(st.integers(0, 500), st.just(NEVER)),
        min_size=costs.grid.count, max_size=costs.grid.count)))
    link_bad, link_silent, device_bad, device_silent = (data.draw(some) for _ in range(4))
    link, device = sides(costs, latency=data.draw(st.integers(0, 50)))
    scheduler = Watched(schedule, costs, policy, deadlines)
    run = simulate(scheduler, Faulty(link, link_bad, link_silent),
                   Faulty(device, device_bad, device_silent))
    check_log(run, schedule, policy)
    broken_link = link_bad | link_silent
    for chunk in run.lost:
        given_up = {record.chunk for record in run.log if record.decision in (
            Decision.STREAM_FAILED, Decision.STREAM_LATE)}
        assert chunk in given_up
    if deadlines is None and policy.stream_timeout > 60 * 16 + 50:
        assert not broken_link.isdisjoint(run.lost) or not run.lost

    again = Scheduler(schedule, costs, policy, deadlines)
    for event in run.events:
        again.react(*event)
    assert again.log == run.log and again.finished


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_varying_rates_never_beat_the_bound_of_what_really_passed(data):
    """Rates of at most 1 can only make a run longer."""
    costs, rule = data.draw(problems())
    lengths = data.draw(st.lists(st.integers(1, 100), min_size=1, max_size=5))
    starts = [sum(lengths[:index]) for index in range(len(lengths) + 1)]

    def trace():
        rate = st.integers(0, 1 << 16)
        rates = data.draw(st.lists(rate, min_size=len(lengths), max_size=len(lengths)))
        return Trace(starts, [*rates, 1 << 15])

    policy = data.draw(st.sampled_from([Policy(), PAPER_POLICY]))
    schedule = plan(costs, rule, shares=(0.25,))
    run = simulate(Watched(schedule, costs, policy), *sides(costs, (trace(), trace())))
    check_log(run, schedule, policy)
    assert run.lost == [] and run.makespan >= lower_bound(costs, rule)


def test_a_dead_link_costs_no_more_than_computing_all_does():
    costs, rule = example()
    schedule = plan(costs, rule)
    policy = Policy(stream_timeout=50)
    link, device = sides(costs, (constant(0), constant(1)))
    run = simulate(Watched(schedule, costs, policy), link, device)
    check_log(run, schedule, policy)
    assert run.lost == []
    assert {route for _, route in run.present.values()} == {Route.COMPUTE}


def example():
    grid = Grid(blocks=3, layers=3, heads=2)
    return Costs(grid=grid, stream=[10] * 18, compute=[12] * 18), Rule.PAPER
