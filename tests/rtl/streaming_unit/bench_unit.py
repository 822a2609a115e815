"""Whole jobs: what is written, what is decided, and what is reported."""

import cocotb
from cocotb import start_soon
from cocotb.triggers import with_timeout

from golden.streaming.policy import Decision, Event
from golden.streaming.writer import Window
from hw.streaming.scheduler.layouts import LoadError
from sim.memory import MemoryFault
from sim.streaming.driver import COPY, DECISION, FRAME, JOB, StreamingDriver
from sim.testbench import CLOCK_NS, cycles, reset
from tests.rtl.streaming_unit.scenes import MEMORY_BYTES, make_prompt
from tests.rtl.streaming_unit.surroundings import SEED, TIMEOUT_CYCLES, Scene, aligned


@cocotb.test
async def job_comes_whole(dut):
    scene = Scene(dut)
    await scene.start()
    prompt = make_prompt(scene.config, SEED)
    await scene.load(prompt)
    end = await scene.run(prompt)
    assert (end["code"], end["id"]) == (0, 0)
    brought = await scene.check(prompt)
    assert brought, str(scene.driver.reports).replace("kind", "k")
    assert await scene.driver.read("job_present") == prompt.grid.count
    assert await scene.driver.count(DECISION, Decision.PRESENT) == prompt.grid.count
    assert await scene.driver.read("busy") == 0


@cocotb.test
async def jobs_follow_each_other_under_stalls(dut):
    scene = Scene(dut, stall=0.3, shuffle=True)
    await scene.start()
    for number in range(3):
        prompt = make_prompt(scene.config, SEED + number)
        await scene.load(prompt)
        end = await scene.run(prompt, compute=lambda *_: [(scene.rng.randint(1, 800), True)])
        assert (end["code"], end["id"]) == (0, 0)
        assert await scene.check(prompt)


@cocotb.test
async def faults_are_recovered(dut):
    """Frames damaged, cut, late, doubled or missing, and computations that fail."""
    scene = Scene(dut, stall=0.1)
    await scene.start()
    rng = scene.rng

    def link(chunk, frame):
        fault = rng.choice(["none", "flip", "cut", "longer", "twice", "late", "never"])
        if fault == "flip":
            damaged = bytearray(frame)
            damaged[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
            frame = bytes(damaged)
        elif fault == "cut":
            frame = frame[:rng.randrange(1, len(frame))]
        elif fault == "longer":
            frame += bytes(scene.config.bus_bytes)
        elif fault == "twice":
            return [(0, frame), (0, frame)]
        elif fault == "late":
            return [(6000, frame)]
        elif fault == "never":
            return []
        return [(0, frame)]

    def compute(*_):
        fault = rng.choice(["none", "none", "bad", "never"])
        return [] if fault == "never" else [(rng.randint(1, 300), fault == "none")]

    refused = 0
    for number in range(3):
        prompt = make_prompt(scene.config, SEED + number, stream_timeout=300, compute_timeout=60,
                             retries=rng.randrange(3))
        await scene.load(prompt)
        end = await scene.run(prompt, link=link, compute=compute)
        assert end["code"] == 0
        lost = [r for r in scene.driver.reports
                if r["kind"] == DECISION and r["code"] == Decision.LOST]
        assert end["id"] == len(lost)
        refused += sum(r["kind"] == FRAME for r in scene.driver.reports)
        await cycles(dut, 3000)  # late frames arrive, and change nothing
        await scene.check(prompt)
    assert refused


@cocotb.test
async def job_can_be_aborted(dut):
    scene = Scene(dut)
    await scene.start()
    prompt = make_prompt(scene.config, SEED)
    for wait in (0, 5, 60, 400, 1500):
        await scene.load(prompt)
        driver = scene.driver
        driver.reports.clear()
        await driver.write("job_start", 1)
        await cycles(dut, wait)
        await driver.write("job_abort", 1)
        end = await with_timeout(driver.job_end(), TIMEOUT_CYCLES * CLOCK_NS, "ns")
        assert end["kind"] == JOB and end["code"] in (0, 3)
        driver.requests.clear()
        driver.orders.clear()
        await cycles(dut, 600)
        driver.requests.clear()
        driver.orders.clear()
        end = await scene.run(prompt)
        assert (end["code"], end["id"]) == (0, 0)
        await scene.check(prompt)


@cocotb.test
async def copies_and_feeds_beside_a_job(dut):
    """Frames that lie in memory are fed, copies run meanwhile, both by command and by chain."""
    scene = Scene(dut, stall=0.2, shuffle=True)
    await scene.start()
    prompt = make_prompt(scene.config, SEED, tokens=17)
    await scene.load(prompt)
    driver, free = scene.driver, aligned(prompt.end + 4096)
    await driver.grant(1, Window(True, free, MEMORY_BYTES - 1))
    frames, place = {}, free
    expected_copies = []
    for chunk in prompt.schedule.stream_list:
        frame = prompt.frame(chunk)
        await scene.put(place, frame)
        frames[chunk] = place, len(frame)
        place = aligned(place + len(frame))
    for number in range(6):
        source, size = free + scene.rng.randrange(5000), scene.rng.randint(1, 300)
        target = place + 512 * number + scene.rng.randrange(64)
        expected_copies.append((source, target, size))
        driver.command.send([{
            "kind": 0, "tag": number, "source": source, "destination": target, "row_bytes": size,
            "rows": 1, "window_mask": 2}])

    def link(chunk, frame):
        if chunk in frames:
            source, size = frames[chunk]
            driver.command.send([{"kind": 1, "tag": 100, "source": source, "row_bytes": size,
                                  "rows": 1}])
            return []
        return [(0, frame)]

    end = await scene.run(prompt, link=link)
    assert (end["code"], end["id"]) == (0, 0)
    for source, target, size in expected_copies:
        scene.image[target:target + size] = scene.image[source:source + size]
    brought = await scene.check(prompt)
    copies = [r for r in driver.reports if r["kind"] == COPY]
    assert sorted(r["id"] for r in copies if r["id"] != 100) == list(range(6))
    assert all(r["code"] == 0 for r in copies)
    fed = set(brought) & set(frames)
    assert fed and len(copies) - 6 >= len(fed)


@cocotb.test
async def bus_errors_fail_what_they_hit(dut):
    """A read or write answered with an error: that chunk comes by the other route."""
    scene = Scene(dut)
    await scene.start()
    prompt = make_prompt(scene.config, SEED)
    driver = scene.driver
    # The schedule cannot be read: the job does not begin.
    await scene.load(prompt)
    scene.memory.set_fault(MemoryFault.READ_SLVERR, prompt.schedule_base, prompt.schedule_base + 1)
    end = await scene.run(prompt)
    assert end["code"] == 1 and not driver.events
    # No record can be read: all is computed.
    scene.memory.set_fault(MemoryFault.READ_DECERR, 0, prompt.schedule_base)
    end = await scene.run(prompt)
    assert (end["code"], end["id"]) == (0, 0)
    assert not await scene.check(prompt)
    assert await driver.read("records_failed") > 0
    # No page can be written: the same, and each frame is reported.
    scene.memory.set_fault(MemoryFault.WRITE_SLVERR, prompt.pages_base, prompt.end)
    end = await scene.run(prompt)
    assert (end["code"], end["id"]) == (0, 0)
    assert not [e for e in driver.events if Event(e["event"]) == Event.LINK_DONE]
    assert {r["code"] for r in driver.reports if r["kind"] == FRAME} == {21}
    # The window is withdrawn: nothing is written.
    scene.memory.set_fault(MemoryFault.NONE)
    await driver.grant(0, Window(False, 0, 0))
    before = await scene.memory.dump()
    end = await scene.run(prompt)
    assert (end["code"], end["id"]) == (0, 0)
    assert await scene.memory.dump() == before
    assert {r["code"] for r in driver.reports if r["kind"] == FRAME} == {20}
    # And all is well again.
    await scene.load(prompt)
    end = await scene.run(prompt)
    assert (end["code"], end["id"]) == (0, 0)
    assert await scene.check(prompt)


@cocotb.test
async def what_a_job_may_not_be_is_refused(dut):
    scene = Scene(dut)
    await scene.start()
    prompt = make_prompt(scene.config, SEED)
    driver = scene.driver
    await scene.load(prompt)
    config = scene.config
    for name, value in (
        ("job_chunks", 0), ("job_chunks", config.chunks + 1), ("stages", 257), ("scan", 0),
        ("stream_outstanding", config.outstanding + 1), ("records", 32), ("window_log2", 5),
        ("table_page", 1 << 24), ("id", 0),
    ):
        await driver.write(name, value, good=False)
    for name, value, error in (
        ("blocks", prompt.grid.blocks - 1, LoadError.RANGE),
        ("blocks", prompt.grid.blocks + 1, LoadError.MISSING),
        ("layers", 31, LoadError.MISSING),  # which is found before the table ends
    ):
        was = await driver.read(name)
        await driver.write(name, value)
        end = await scene.run(prompt)
        assert (end["code"], end["id"]) == (2, error.value), f"{name}={value}: {end}"
        assert not driver.events and not driver.orders and not driver.requests
        await driver.write(name, was)
    driver.reports.clear()
    await driver.write("job_start", 1)
    await driver.write("first_id", 7, good=False)  # while it runs
    await driver.write("job_start", 1, good=False)
    await driver.write("job_abort", 1)
    await with_timeout(driver.job_end(), TIMEOUT_CYCLES * CLOCK_NS, "ns")
    driver.requests.clear()
    driver.orders.clear()
    end = await scene.run(prompt)
    assert (end["code"], end["id"]) == (0, 0)
    await scene.check(prompt)


@cocotb.test
async def reset_in_mid_job_leaves_nothing(dut):
    for after in (50, 700, 1900):
        scene = Scene(dut, stall=0.2, shuffle=True)
        await scene.start()
        prompt = make_prompt(scene.config, SEED)
        await scene.load(prompt)
        driver = scene.driver
        tasks = [start_soon(driver.serve_link(prompt, lambda _, frame: [(0, frame)])),
                 start_soon(driver.serve_compute(prompt, lambda *_: [(50, True)]))]
        await driver.write("job_start", 1)
        await cycles(dut, after)
        for task in tasks:
            task.cancel()
        driver.stop()
        await reset(dut)
        scene.driver = StreamingDriver(dut, scene.config, seed=after)
        await scene.load(prompt)
        end = await scene.run(prompt)
        assert (end["code"], end["id"]) == (0, 0)
        await scene.check(prompt)
        scene.driver.stop()


@cocotb.test
async def cycles_add_up(dut):
    """Two looks at the counters lie exactly as far apart as their sums of causes tell."""
    scene = Scene(dut)
    await scene.start()
    prompt = make_prompt(scene.config, SEED)
    await scene.load(prompt)
    driver = scene.driver
    await driver.write("counter_clear", 1)
    first = await driver.read_counters()
    assert (first["beats_link"], first["beats_written"], first["beats_read"]) == (0, 0, 0)
    written, read = scene.memory.write_beats, scene.memory.read_beats
    await scene.run(prompt)
    brought = await scene.check(prompt)
    last = await driver.read_counters()
    assert sum_of_causes(last) - sum_of_causes(first) == last["now"] - first["now"]
    assert min(last[f"cycles_{name}"] for name in ("busy", "memory", "link", "idle")) > 0
    assert last["cycles_output"] == 0
    assert last["beats_written"] == scene.memory.write_beats - written
    assert last["beats_read"] == scene.memory.read_beats - read
    assert last["beats_link"] == sum(
        len(prompt.frame(chunk)) for chunk in brought) // scene.config.bus_bytes
    assert last["answers_unknown"] == last["records_failed"] == 0


def sum_of_causes(counters):
    return sum(value for name, value in counters.items() if name.startswith("cycles_"))
