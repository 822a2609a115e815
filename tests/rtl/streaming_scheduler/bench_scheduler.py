"""Random jobs, each decision against golden's: see `Job.check`."""

import random
from collections import Counter

import cocotb
from cocotb.triggers import RisingEdge

from golden.streaming.policy import Decision, Event
from sim.testbench import arguments, cycles, start
from tests.hw.streaming.jobs import World, random_job
from tests.rtl.streaming_scheduler.scenes import CONFIGS
from tests.rtl.streaming_scheduler.surroundings import Surroundings


def outstanding():
    return CONFIGS[arguments()["config"]].outstanding


def draw_job(**options):
    most = outstanding()
    return random_job(
        random, arguments()["most"], stream_outstanding=random.randint(1, most),
        compute_outstanding=random.randint(1, most), **options)


@cocotb.test(timeout_time=20, timeout_unit="sec")
async def random_jobs(dut):
    """Every schedule, sound or not, policy and fault; ports that stall or take nothing for a time;
    and every decision occurs."""
    await start(dut)
    around = Surroundings(dut)
    decisions, events = Counter(), Counter()
    for _ in range(arguments()["jobs"]):
        job = draw_job()
        around.set_stalls(random.choice([0, 0, 0.5]), **{
            name: random.random() < 0.1 for name in ("o_link", "o_compute")})
        golden = await around.run(job, World.at_random(random, job),
                                  tick_log2=random.choice([0, 3, 5, 7]))
        decisions.update(record.decision for record in golden.log)
        events.update(Event(event["event"]) for event in around.events.items)
    cocotb.log.info("%s", {decision.name: decisions[decision] for decision in Decision})
    cocotb.log.info("%s", {event.name: events[event] for event in Event})
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
