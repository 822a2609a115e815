import random
from collections import Counter
from dataclasses import replace

import pytest

from hw.streaming.requests import Requests, slot_count
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import MemoryModel
from tests.hw.streaming.records import bad_fields, make_record, pack_record
from tests.hw.streaming.request_bench import RECORDS, Bench, Rates, make_config

# Nothing waits, so that much meets in one cycle.
HASTY = Rates(request=1, lookup=1, sent=1, expected=0.8, answer=0.7, cancel=0, write=0.7,
              bad=0.4)
SLOW = Rates(sent=0.05, answer=0.1, expected=0.2, write=0.1, cancel=0.02)
MANY_LATE = Rates(request=1, lookup=1, sent=1, expected=1, answer=1, cancel=0, write=0.02, bad=0)


CASES = {
    "usual": (make_config(), Rates(), {}),
    "slow": (make_config(outstanding=5), SLOW, {"first_id": 0}),
    "far": (make_config(bus_bytes=64, outstanding=1, address_bits=64, windows=16), Rates(),
            {"latency": 30}),
    "narrow": (make_config(bus_bytes=8, chunks=64), Rates(lookup=0.9, sent=1), {}),
    "full": (make_config(outstanding=3), MANY_LATE, {"latency": 1}),
}


@pytest.mark.parametrize("name", [
    "usual", *(pytest.param(name, marks=pytest.mark.regress) for name in CASES if name != "usual")])
def test_requests_follow_the_model(name):
    config, rates, options = CASES[name]
    model = Bench(config, seed=len(name), rates=rates, cycles=1_500, **options).run()
    assert {good for _, good in model.answers} == {False, True}


def test_given_up_in_every_state_and_together_with_all_that_ends_it():
    met = Counter()
    for seed, rates in ((1, replace(HASTY, cancel=0.05)), (2, replace(HASTY, abort=0.03))):
        met += Bench(make_config(outstanding=4), seed=seed, cycles=3_000, latency=1,
                     rates=rates).run().met
    print(met)
    states = ("RECORD", "FAILED", "AWAITED", "looked up", "FOUND", "TAKEN", "writing", "ENDS",
              "ENDED")
    expected = {"nothing", "given up with its record",
                *((how, state) for how in ("cancel", "abort") for state in states)}
    assert not {case for case in expected if not met[case]}


def read_records(config, records, *, asked, answered):
    """Request a chunk of each record, and expect so many to go out, and to be answered at once."""
    memory = MemoryModel(size=1 << 12)
    for chunk, fields in enumerate(records):
        memory.data[64 * chunk:64 * chunk + 64] = pack_record(fields)
    dut = Requests(config)
    return run_stream_test(
        dut, feeds={"i_request": range(len(records))}, seed=1, inputs={"first_id": 100},
        sinks={"o_request": asked, "o_answer": answered},
        testbenches=[memory.serve_read_port(dut.bus)]).outputs


def test_each_bad_record_ends_its_request():
    config, rng = make_config(chunks=64), random.Random(3)
    cases = [make_record(config, rng, **fields) for fields in bad_fields(config)]
    outputs = read_records(config, cases, asked=0, answered=len(cases))
    assert outputs["o_answer"] == [{"chunk": chunk, "good": 0} for chunk in range(len(cases))]


def test_records_at_the_limits_are_good():
    """Each limit reached, and what is just within; a record of zeros but for its tokens."""
    config, rng = make_config(), random.Random(4)
    top = (1 << 40) - 16
    limits = [{"tokens": 64, "table_index": 6}, {"tokens": 49, "table_index": 6},
              {"tokens": 48, "table_index": 7}, {"tokens": 1, "table_index": 9},
              {"tokens": 16, "table_index": 9}, {"key_base": top, "value_base": top},
              {"page_stride": (1 << 32) - 16, "exponent_stride": (1 << 32) - 16},
              {"row_stride": (1 << 16) - 16, "window_mask": 15, "flags": 1},
              dict.fromkeys(make_record(config, rng), 0) | {"tokens": 1, "reserved": bytes(12)}]
    cases = [make_record(config, rng, **fields) for fields in limits]
    outputs = read_records(config, cases, asked=len(cases), answered=0)
    assert outputs["o_request"] == [100 + chunk for chunk in range(len(cases))]


@pytest.mark.parametrize("bus_bytes", [8, 64])
def test_cycles(bus_bytes):
    config = make_config(bus_bytes=bus_bytes)
    rng = random.Random(2)
    memory = MemoryModel(size=RECORDS + 1024, latency=1)
    memory.data[RECORDS:RECORDS + 128] = pack_record(make_record(config, rng)) * 2
    dut = Requests(config)
    seen = {name: [] for name in ("ar", "r", "request", "lookup", "expected", "asked", "answer")}

    async def watch(ctx):
        cycle = 0
        for path in ("o_request", "o_expected", "o_answer"):
            ctx.set(getattr(dut, path).ready, 1)
        while True:
            _, _, *values = await ctx.tick().sample(
                dut.bus.ar.valid, dut.bus.r.valid, dut.o_request.valid,
                dut.i_lookup.valid & dut.i_lookup.ready, dut.o_expected.valid,
                dut.i_request.valid & dut.i_request.ready, dut.o_answer.valid)
            for name, value in zip(seen, values, strict=True):
                if value:
                    seen[name].append(cycle)
            cycle += 1

    async def drive(ctx):
        ctx.set(dut.records, RECORDS)
        ctx.set(dut.i_request.valid, 1)
        await ctx.tick().until(dut.i_request.ready)
        ctx.set(dut.i_request.payload, 1)
        await ctx.tick().until(dut.i_request.ready)
        ctx.set(dut.i_request.valid, 0)
        await ctx.tick().repeat(20)
        ctx.set(dut.i_lookup.valid, 1)
        await ctx.tick().repeat(13)   # a lookup of chunk 0 found, the others not
        ctx.set(dut.i_lookup.valid, 0)
        ctx.set(dut.ended, 1)
        ctx.set(dut.ended_good, 1)
        await ctx.tick()
        ctx.set(dut.ended, 0)

    run_stream_test(dut, feeds={}, sinks={}, seed=1, quiet_cycles=100,
                    testbenches=[watch, drive, memory.serve_read_port(dut.bus)])
    first, second = seen["asked"]
    beats = 64 // bus_bytes
    assert seen["ar"] == [first + 2, second + 2]
    # The reader gives a record 2 cycles after its last beat, or 1.
    given = seen["r"][beats - 1] + (1 if bus_bytes == 64 else 2)
    assert seen["request"][0] == given + 2
    assert second == seen["request"][0] + 1
    low = seen["lookup"][0]
    assert seen["lookup"] == [low, low + 4, low + 8, low + 12]
    assert seen["expected"] == [cycle + 3 for cycle in seen["lookup"]]
    assert seen["answer"] == [low + 14]


def test_slots_for_what_is_in_flight_and_under_way():
    assert slot_count(make_config(outstanding=3)) == 3 + 8


def test_bad_config():
    with pytest.raises(TypeError, match="Requests config must be a StreamingConfig, not 3"):
        Requests(3)
