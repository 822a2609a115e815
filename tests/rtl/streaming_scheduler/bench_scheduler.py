"""Random jobs, each decision against golden's: see `Job.check`."""

import random
from collections import Counter
from dataclasses import replace

import cocotb
from cocotb.triggers import RisingEdge

from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.policy import NEVER, Decision, Event, Policy
from golden.streaming.schedule import Schedule
from hw.streaming.scheduler import LoadError
from sim.streaming.schedule_host import Surroundings
from sim.streaming.schedule_job import Job
from sim.testbench import arguments, cycles, start
from tests.hw.streaming.jobs import World, random_job
from tests.rtl.streaming_scheduler.scenes import CONFIGS

SOUND_POLICY = {
    "blocks": 2, "layers": 2, "heads": 2, "stages": 2, "scan": 8, "stream_outstanding": 1,
    "compute_outstanding": 1, "stream_timeout": 1000, "compute_timeout": 1000}
SOUND_ENTRY = {
    "route": 0, "stage": 0, "stream_ticks": 5, "compute_ticks": 5,
    "deadline": 1000}

# Fields to change, of entries by their index or of the policy; and why the job is then refused.
REFUSALS = [
    ({3: {"stream_ticks": 0}}, LoadError.TICKS),
    ({3: {"compute_ticks": 0}}, LoadError.TICKS),
    ({3: {"chunk": 2}}, LoadError.TWICE),
    ({3: {"chunk": 2, "route": 1}}, LoadError.TWICE),
    ({2: {"stage": 1}, 3: {"stage": 0}}, LoadError.STAGE),
    ({7: {"stage": 2}}, LoadError.STAGE),
    ({7: {"chunk": 8}}, LoadError.MISSING),
    ({8: {"chunk": 8}}, LoadError.RANGE),
    ({"policy": {"blocks": 1}}, LoadError.RANGE),
    ({"policy": {"blocks": 3}}, LoadError.MISSING),
    ({"policy": {"layers": 0}}, LoadError.GRID),
    ({"policy": {"stages": 1}, 7: {"stage": 1}}, LoadError.STAGE),
    ({"policy": {"stages": 0}}, LoadError.STAGE),
    ({"policy": {"stages": 257}}, LoadError.STAGE),
    ({"policy": {"scan": 0}}, LoadError.POLICY),
    ({"policy": {"stream_outstanding": 0}}, LoadError.POLICY),
    ({"policy": {"compute_outstanding": 5}}, LoadError.POLICY),
    ({"policy": {"window_log2": 5}}, LoadError.POLICY),
    ({"policy": {"compute_timeout": 0}}, LoadError.POLICY),
    ({1: {"stream_ticks": 0}, 2: {"chunk": 0}}, LoadError.TICKS),
]


def outstanding():
    return CONFIGS[arguments()["config"]].outstanding


def draw_job(**options):
    most = outstanding()
    return random_job(random, arguments()["most"], **{
        "stream_outstanding": random.randint(1, most),
        "compute_outstanding": random.randint(1, most), **options})


@cocotb.test(timeout_time=20, timeout_unit="sec")
async def random_jobs(dut):
    """Every schedule, sound or not, policy and fault; ports that stall or take nothing for a time;
    and every decision occurs."""
    await start(dut)
    around = Surroundings(dut)
    decisions, events, longest = Counter(), Counter(), Counter()
    for number in range(arguments()["jobs"]):
        dead = {}
        match number % 6:
            case 0:   # states are computed
                job = draw_job(kind="streamed", retries=0, compute_timeout=2000)
                world = World(random, job, faults=(0.2, 0))
            case 1:   # what is late cannot be computed either
                job = draw_job(has_deadlines=True, stream_timeout=2000)
                world = World(random, job, faults=(0, 0.3), rates=(0.25, 1))
            case _:
                job = draw_job()
                world = World.at_random(random, job)
                dead = {name: random.random() < 0.1 for name in ("o_link", "o_compute")}
        around.set_stalls(random.choice([0, 0, 0.5]), **dead)
        if number % 3 == 0:
            around.takers["o_record"].set(0.98)   # the log is full most of the time
        golden = await around.run(job, world, tick_log2=random.choice([0, 3, 5]))
        decisions.update(record.decision for record in golden.log)
        events.update(Event(event["event"]) for event in around.events.items)
        longest[job.policy.scan] = max(longest[job.policy.scan], dut.longest.value.to_unsigned())
    cocotb.log.info("%s", {decision.name: decisions[decision] for decision in Decision})
    cocotb.log.info("%s", {event.name: events[event] for event in Event})
    cocotb.log.info("most cycles of an event, by scan: %s", dict(sorted(longest.items())))
    assert set(decisions) == set(Decision) and set(events) == set(Event)


@cocotb.test(timeout_time=20, timeout_unit="sec")
async def aborts(dut):
    """A job that is ended at any time leaves nothing behind, and nothing waits."""
    await start(dut)
    around = Surroundings(dut)
    for _ in range(arguments()["jobs"]):
        job = draw_job()
        around.set_stalls(0, o_cancel=random.random() < 0.3, o_record=random.random() < 0.3)
        await around.load(job.policy_fields(), job.entries(random), World.at_random(random, job))
        await cycles(dut, random.choice([0, 1, random.randrange(200), random.randrange(20_000)]))
        await around.abort()
        await RisingEdge(dut.clk)
        assert not dut.busy.value and not dut.finished.value
        assert not dut.o_link_valid.value and not dut.o_cancel_valid.value
        around.set_stalls(0)
        await cycles(dut, 2 * 512)
        assert dut.loading.value and dut.quiet.value
        around.requests.clear()
        for number in range(2):
            around.answers[number].send({"chunk": 1, "good": 1})   # nobody waits for it
        await cycles(dut, 20)
        assert not around.requests
        job = draw_job()
        await around.run(job, World.at_random(random, job), tick_log2=0)


@cocotb.test(timeout_time=1, timeout_unit="sec")
async def refusals(dut):
    """Nothing starts of a job that is not sound, and a sound one runs after it."""
    await start(dut)
    around = Surroundings(dut)
    chunks = CONFIGS[arguments()["config"]].chunks
    full = {index: {"chunk": index} for index in range(chunks)}
    for change, error in [*REFUSALS, (
            full | {"policy": {"blocks": chunks // 4 + 1}}, LoadError.GRID)]:
        count = max(8, *(index + 1 for index in change if index != "policy"), 0)
        entries = [SOUND_ENTRY | {"chunk": index} | change.get(index, {})
                   for index in range(count)]
        await around.load(SOUND_POLICY | change.get("policy", {}), entries)
        await cycles(dut, 2)
        assert dut.busy.value
        await around.ended()
        found = LoadError(dut.error.value.to_unsigned())
        assert found == error and not dut.finished.value, f"{change}: {error}, not {found}"
        assert not around.log and not around.events.items and not around.requests
        job = draw_job()
        await around.run(job, World(random, job), tick_log2=0)


@cocotb.test(timeout_time=1, timeout_unit="sec")
async def dead_ports(dut):
    """A port that takes nothing holds nothing up: the other route brings all. What was never taken
    needs no giving up."""
    await start(dut)
    around = Surroundings(dut)
    for dead in ("o_link", "o_compute"):
        job = draw_job(kind="planned", longest=20)
        policy = Policy(stream_timeout=200, compute_timeout=200, scan=8)
        job = replace(job, policy=policy, deadlines=None)
        around.set_stalls(0, **{dead: True})
        golden = await around.run(job, World(random, job), tick_log2=5)
        routes = {int(route) for route, _ in around.requests}
        assert golden.left == 0
        if dead == "o_link":
            assert routes == {1} and not around.cancelled
        else:
            assert 0 in routes


@cocotb.test(timeout_time=1, timeout_unit="sec")
async def held_cancel(dut):
    """While the receive side cannot promise that a chunk given up is not written any more, events
    are absorbed but nothing is requested."""
    await start(dut)
    around = Surroundings(dut)
    job = draw_job(kind="planned")
    policy = Policy(stream_timeout=100, refine=False, scan=8, stream_outstanding=2)
    job = replace(job, policy=policy, deadlines=None)
    world = World(random, job)
    answers = world.request
    world.request = lambda now, route, chunk: answers(now, route, chunk) if route else []
    around.set_stalls(0, o_cancel=True)
    await around.load(job.policy_fields(), job.entries(random), world, 5)
    await RisingEdge(dut.o_cancel_valid)
    await cycles(dut, 4)
    requests = len(around.requests)
    await cycles(dut, 20_000)
    assert len(around.requests) == requests
    failed = [record["chunk"] for record in around.log
              if record["decision"] == Decision.STREAM_FAILED]
    assert len(failed) > 1 and not {(1, chunk) for chunk in failed} & set(around.requests)
    around.set_stalls(0)
    await around.ended()
    assert job.check(around.events.items, around.log).finished and not around.violations
    assert around.cancelled == [chunk for route, chunk in around.requests if route == 0]


@cocotb.test(timeout_time=1, timeout_unit="sec")
async def deadlines(dut):
    """A chunk whose turn comes in the very tick of its deadline is late; one in flight is given up
    in that tick."""
    await start(dut)
    around = Surroundings(dut)
    grid = Grid(blocks=1, layers=2, heads=1)
    schedule = Schedule(grid=grid, rule=Rule.PAPER, stream=[[0, 1]], compute=[[]])
    policy = Policy(stream_outstanding=1, refine=False)
    for offset, late in ((-1, [(20, 1)]), (0, [(20, 1)]), (1, [(21, 1)]), (30, [])):
        job = Job(schedule=schedule, costs=Costs(grid=grid, stream=[20] * 2, compute=[20] * 2),
                  policy=policy, deadlines=[NEVER, 20 + offset])
        await around.run(job, World(random, job), tick_log2=8)
        assert late == [(record["time"], record["chunk"]) for record in around.log
                        if record["decision"] == Decision.STREAM_LATE]
