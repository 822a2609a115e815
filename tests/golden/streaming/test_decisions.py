"""Single decisions of the run-time scheduler, worked out by hand.

The grid of most tests is 2 blocks x 2 layers x 1 head: chunks 0 and 1 are layers 0 and 1 of block
0, chunks 2 and 3 of block 1. Chunk 1 needs 0 computed, 2 needs 0 present, 3 needs 2 computed.
"""

from dataclasses import replace

import pytest

from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.policy import NEVER, PAPER_POLICY, Decision, Event, Policy
from golden.streaming.runtime import Scheduler
from golden.streaming.schedule import Schedule
from golden.streaming.simulate import Faulty, Serial, simulate
from golden.streaming.traces import constant, outage

GRID = Grid(blocks=2, layers=2, heads=1)
ONE = Policy(stream_outstanding=1, compute_outstanding=1)
FIXED = replace(ONE, refine=False)


def scheduler(stream, compute, policy, *, stream_ticks=10, compute_ticks=10, grid=GRID,
              rule=Rule.PAPER, deadlines=None):
    schedule = Schedule(grid=grid, rule=rule, stream=stream, compute=compute)
    costs = Costs(grid=grid, stream=[stream_ticks] * grid.count,
                  compute=[compute_ticks] * grid.count)
    return Scheduler(schedule, costs, policy, deadlines)


def react(unit, *event):
    """The decisions that one event leads to, stages left out."""
    before = len(unit.log)
    unit.react(*event)
    return [(record.decision.name, record.chunk) for record in unit.log[before:]
            if record.decision != Decision.STAGE]


def test_both_routes_start_at_once_and_computing_waits_for_what_it_needs():
    unit = scheduler([(0,)], [(2, 3, 1)], FIXED)
    assert react(unit, 0, Event.START) == [("REQUEST_STREAM", 0)]
    assert react(unit, 12, Event.LINK_DONE, 0) == [("PRESENT", 0), ("REQUEST_COMPUTE", 2)]
    assert react(unit, 25, Event.COMPUTE_DONE, 2) == [("PRESENT", 2), ("REQUEST_COMPUTE", 3)]
    # Chunk 1 is in the compute list though chunk 0 was streamed: nothing will ever give it a state.
    assert react(unit, 36, Event.COMPUTE_DONE, 3) == [
        ("PRESENT", 3), ("COMPUTE_BLOCKED", 1), ("FALL_BACK", 1), ("REQUEST_STREAM", 1)]
    assert react(unit, 44, Event.LINK_DONE, 1) == [("PRESENT", 1)]
    assert unit.finished


def test_strict_computing_waits_for_all_heads_below():
    grid = Grid(blocks=1, layers=2, heads=2)
    for rule, expected in ((Rule.PAPER, 2), (Rule.STRICT, 1)):
        unit = scheduler([()], [(0, 2, 1, 3)], FIXED, grid=grid, rule=rule)
        react(unit, 0, Event.START)
        assert react(unit, 10, Event.COMPUTE_DONE, 0)[1] == ("REQUEST_COMPUTE", expected)


def test_a_barrier_holds_the_next_stage_back():
    for ahead in (0, 1):
        policy = replace(FIXED, stream_ahead=ahead, compute_ahead=ahead)
        unit = scheduler([(2,), (3,)], [(0,), (1,)], policy)
        react(unit, 0, Event.START)
        started = react(unit, 5, Event.LINK_DONE, 2)[1:]
        assert started == ([("REQUEST_STREAM", 3)] if ahead else [])
        after = react(unit, 9, Event.COMPUTE_DONE, 0)[1:]
        assert after == ([] if ahead else [("REQUEST_STREAM", 3)]) + [("REQUEST_COMPUTE", 1)]


def test_a_corrupt_chunk_is_computed_with_the_states_it_needs():
    """Chunk 1 fails on the link: the state of chunk 0, which was streamed, is computed first."""
    unit = scheduler([(0, 1)], [(2, 3)], replace(FIXED, compute_outstanding=2))
    react(unit, 0, Event.START)
    react(unit, 10, Event.LINK_DONE, 0)
    react(unit, 15, Event.COMPUTE_DONE, 2)
    assert react(unit, 20, Event.LINK_FAILED, 1) == [
        ("STREAM_FAILED", 1), ("RECOVER", 0), ("RECOVER", 1), ("REQUEST_STATE", 0)]
    assert react(unit, 30, Event.COMPUTE_DONE, 0) == [("STATE_DONE", 0), ("REQUEST_COMPUTE", 1)]
    react(unit, 31, Event.COMPUTE_DONE, 3)
    assert react(unit, 40, Event.COMPUTE_DONE, 1) == [("PRESENT", 1)]
    assert unit.finished


def test_a_chain_takes_over_chunks_that_still_wait_for_the_link():
    unit = scheduler([(1, 0)], [(2, 3)], FIXED)
    react(unit, 0, Event.START)
    assert react(unit, 5, Event.LINK_FAILED, 1) == [
        ("STREAM_FAILED", 1), ("RECOVER", 0), ("RECOVER", 1), ("REQUEST_COMPUTE", 0)]


def test_a_failed_chunk_is_streamed_again_while_retries_are_left():
    unit = scheduler([(0, 1, 2, 3)], [()], replace(FIXED, retries=1))
    react(unit, 0, Event.START)
    again = [("STREAM_FAILED", 0), ("RETRY", 0), ("REQUEST_STREAM", 0)]
    assert react(unit, 5, Event.LINK_FAILED, 0) == again
    assert react(unit, 9, Event.LINK_FAILED, 0)[:2] == [("STREAM_FAILED", 0), ("RECOVER", 0)]


def test_a_chunk_that_both_routes_fail_is_lost():
    unit = scheduler([(0,)], [(2, 3, 1)], FIXED)
    react(unit, 0, Event.START)
    assert react(unit, 5, Event.LINK_FAILED, 0)[-1] == ("REQUEST_COMPUTE", 0)
    decisions = react(unit, 9, Event.COMPUTE_FAILED, 0)
    assert decisions[:2] == [("COMPUTE_FAILED", 0), ("LOST", 0)]
    # Chunk 2 can never be computed now; chunks 3 and 1 follow.
    assert decisions[2:] == [("COMPUTE_BLOCKED", 2), ("FALL_BACK", 2), ("REQUEST_STREAM", 2)]
    react(unit, 20, Event.LINK_DONE, 2)
    react(unit, 30, Event.LINK_DONE, 3)
    assert react(unit, 40, Event.LINK_DONE, 1) == [("PRESENT", 1)] and unit.finished


def test_a_failed_computation_is_streamed():
    unit = scheduler([(2, 3)], [(0, 1)], FIXED)
    react(unit, 0, Event.START)
    assert react(unit, 5, Event.COMPUTE_FAILED, 0) == [("COMPUTE_FAILED", 0), ("FALL_BACK", 0)]
    # The queue goes before the list.
    assert react(unit, 9, Event.LINK_DONE, 2) == [("PRESENT", 2), ("REQUEST_STREAM", 0)]


def test_a_late_chunk_is_given_up_and_its_data_dropped():
    unit = scheduler([(0, 1)], [(2, 3)], FIXED, deadlines=[20, NEVER, NEVER, NEVER])
    react(unit, 0, Event.START)
    assert unit.expiry() == (20, Event.LINK_EXPIRED, 0)
    assert react(unit, 20, Event.LINK_EXPIRED, 0) == [
        ("STREAM_LATE", 0), ("RECOVER", 0), ("REQUEST_STREAM", 1), ("REQUEST_COMPUTE", 0)]
    assert react(unit, 21, Event.LINK_DONE, 0) == [("DROP", 0)]
    assert react(unit, 30, Event.COMPUTE_DONE, 0)[0] == ("PRESENT", 0)


def test_a_chunk_that_is_late_before_its_turn_is_not_requested():
    unit = scheduler([(2, 0, 1)], [(3,)], FIXED, deadlines=[4, NEVER, NEVER, NEVER])
    react(unit, 0, Event.START)
    assert react(unit, 5, Event.LINK_DONE, 2) == [
        ("PRESENT", 2), ("STREAM_LATE", 0), ("RECOVER", 0), ("REQUEST_STREAM", 1),
        ("REQUEST_COMPUTE", 0)]


def test_a_late_chunk_that_nothing_else_can_bring_is_waited_for():
    unit = scheduler([(1,)], [(0, 2, 3)], FIXED, deadlines=[NEVER, 20, NEVER, NEVER])
    react(unit, 0, Event.START)
    react(unit, 5, Event.COMPUTE_FAILED, 0)
    assert react(unit, 20, Event.LINK_EXPIRED, 1) == [("EXTEND", 1)]
    assert unit.expiry()[0] == ONE.stream_timeout


def test_silence_ends_with_the_time_out():
    unit = scheduler([(0, 1)], [(2, 3)], replace(FIXED, stream_timeout=30, compute_timeout=40))
    react(unit, 0, Event.START)
    with pytest.raises(ValueError, match="request of chunk 0 must have expired by 29"):
        unit.react(29, Event.LINK_EXPIRED, 0)
    assert react(unit, 30, Event.LINK_EXPIRED, 0)[0] == ("STREAM_FAILED", 0)
    assert unit.expiry() == (60, Event.LINK_EXPIRED, 1)
    react(unit, 60, Event.LINK_EXPIRED, 1)
    assert react(unit, 70, Event.COMPUTE_EXPIRED, 0)[:2] == [
        ("COMPUTE_FAILED", 0), ("LOST", 0)]


def test_a_slow_link_is_relieved_by_moving_what_can_be_computed():
    """Ratio 1.5 against 1: chunk 0 leaves the link, though computing has work of its own."""
    grid = Grid(blocks=2, layers=1, heads=4)
    unit = scheduler([(4, 5, 6, 7, 0)], [(1, 2, 3)], replace(ONE, idle=False), grid=grid)
    react(unit, 0, Event.START)
    react(unit, 10, Event.COMPUTE_DONE, 1)
    decisions = react(unit, 15, Event.LINK_DONE, 4)
    assert decisions == [("PRESENT", 4), ("REQUEST_STREAM", 5), ("MOVE_TO_COMPUTE", 0)]
    # Moved chunks go before the list.
    assert react(unit, 20, Event.COMPUTE_DONE, 2)[1] == ("REQUEST_COMPUTE", 0)


def test_the_guard_refuses_what_would_end_later():
    grid = Grid(blocks=2, layers=1, heads=4)
    slow = {"stream_ticks": 10, "compute_ticks": 500, "grid": grid}
    lists = [(4, 5, 6, 7, 0)], [(1, 2, 3)]
    for guard, moved in ((True, False), (False, True)):
        unit = scheduler(*lists, replace(ONE, idle=False, guard=guard), **slow)
        react(unit, 0, Event.START)
        decisions = react(unit, 30, Event.LINK_DONE, 4)  # at 30 of 500 ticks, computing is in time
        assert (("MOVE_TO_COMPUTE", 0) in decisions) == moved


def test_an_idle_link_takes_the_last_computation_that_nothing_waits_for():
    """Chunk 1 is last in the list; chunk 0 could not leave, because 1 needs its state."""
    unit = scheduler([(2,)], [(3, 0, 1)], replace(ONE, margin=255))
    react(unit, 0, Event.START)
    assert react(unit, 5, Event.LINK_DONE, 2) == [
        ("PRESENT", 2), ("MOVE_TO_STREAM", 1), ("REQUEST_STREAM", 1)]


def test_moves_are_capped_per_stage():
    for cap in (0, 1, 2):
        grid = Grid(blocks=1, layers=1, heads=8)
        policy = replace(ONE, cap=cap, guard=False)
        unit = scheduler([(0,)], [(1, 2, 3, 4, 5, 6, 7)], policy, grid=grid)
        react(unit, 0, Event.START)
        for index in range(3):
            chunk = next(iter(unit.stream.flying), None)
            if chunk is not None:
                react(unit, 5 + index, Event.LINK_DONE, chunk)
        moves = [record for record in unit.log if record.decision == Decision.MOVE_TO_STREAM]
        assert len(moves) == cap


def test_the_paper_s_refinement_opens_the_next_stage_to_the_link_first():
    policy = replace(PAPER_POLICY, stream_outstanding=1, compute_outstanding=1, window_log2=0)
    grid = Grid(blocks=1, layers=1, heads=6)
    unit = scheduler([(0,), (1,)], [(2, 3, 4), (5,)], policy, grid=grid)
    react(unit, 0, Event.START)
    assert react(unit, 10, Event.LINK_DONE, 0) == [("PRESENT", 0)]  # a barrier
    assert react(unit, 30, Event.COMPUTE_DONE, 2) == [
        ("PRESENT", 2), ("REQUEST_COMPUTE", 3), ("REQUEST_STREAM", 1)]
    assert react(unit, 35, Event.LINK_DONE, 1) == [
        ("PRESENT", 1), ("MOVE_TO_STREAM", 4), ("REQUEST_STREAM", 4)]


def test_the_timer_sees_a_silent_link():
    """Computing has nothing to do when the link falls silent: no event says so but the timer."""
    grid = Grid(blocks=1, layers=1, heads=6)
    ends = {}
    for period in (0, 50):
        policy = replace(ONE, period=period)
        unit = scheduler([range(6)], [()], policy, grid=grid, compute_ticks=70)
        link = Serial(outage(1, at=5, length=1000), [10] * 6)
        ends[period] = simulate(unit, link, Serial(constant(1), [70] * 6)).makespan
    assert ends == {0: 1150, 50: 1010}


def test_faulty_answers():
    side = Faulty(Serial(constant(1), [10, 10, 10]), failing=[0], silent=[1])
    assert [side.request(0, chunk) for chunk in range(3)] == [
        (10, False), (None, True), (30, True)]


@pytest.mark.parametrize("field, value, text", [
    ("stream_outstanding", 0, "in 1..16, not 0"), ("retries", 4, "in 0..3, not 4"),
    ("margin", 256, "in 0..255, not 256"), ("stream_timeout", 0, "in 1..4294967295, not 0"),
])
def test_policies_are_checked(field, value, text):
    with pytest.raises(ValueError, match=rf"Policy\.{field} must be {text}"):
        Policy(**{field: value})
    with pytest.raises(TypeError, match=r"Policy\.guard must be a bool, not 1"):
        Policy(guard=1)
