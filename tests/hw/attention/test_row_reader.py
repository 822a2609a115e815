import random

import pytest

from hw.attention.layouts import Error, Kind
from hw.attention.row_reader import RowReader
from hw.config import AttentionConfig
from hw.presets import PRESETS
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import DECERR, SLVERR, Fault, MemoryModel

TINY = PRESETS["tiny"].attention
SIZE = 4096


def config_of(memory_bytes, head_dim=32, read_rows=8):
    return AttentionConfig(head_dim=head_dim, code_bits=32, lanes=4, max_tokens=256,
                           memory_bytes=memory_bytes, read_rows=read_rows, address_bits=20)


def request(config, address, kind=Kind.FULL, fault=0, **header):
    return {"place": {"address": address, "fault": fault}, "header": {"kind": kind, **header}}


END = {"header": {"kind": Kind.END}}


def random_requests(config, rng, queries, rows=12, faults=0.0):
    requests = []
    for slot in range(queries):
        for _ in range(rng.randrange(rows + 1)):
            requests.append(request(
                config, rng.randrange(0, SIZE, config.row_bytes),
                rng.choice([Kind.FULL, Kind.COARSE, Kind.SUMMARY]), int(rng.random() < faults),
                slot=slot % 4, logits_only=slot & 1, weight=rng.randrange(1, 17),
                position=rng.randrange(256),
                exponents=[rng.randrange(255) for _ in range(config.blocks)]))
        requests.append({"header": {"kind": Kind.END, "slot": slot % 4}})
    return requests


def bus_beats(config, asked):
    return config.coarse_beats if asked["header"]["kind"] == Kind.COARSE else config.full_beats


def expected(config, memory, requests):
    """The beats of each row and the status of each query, by the unit's documentation."""
    beats, statuses, errors, count = [], [], set(), 0
    for asked in requests:
        header = {"slot": 0, "logits_only": 0, "weight": 0, "position": 0,
                  "exponents": [0] * config.blocks, **asked["header"]}
        if header["kind"] == Kind.END:
            beats.append({**header, "data": 0, "last": 1})
            error = min(errors, key=lambda code: code.value, default=Error.NONE)
            statuses.append({"error": error, "beats": count})
            errors, count = set(), 0
            continue
        address, wanted = asked["place"]["address"], bus_beats(config, asked)
        row = bytearray()
        if asked["place"]["fault"]:
            errors.add(Error.WINDOW)
        else:
            count += wanted
            row = memory.data[address:address + wanted * config.memory_bytes]
            for fault in memory.faults:
                if fault.low <= address < fault.high:
                    if fault.response in (SLVERR, DECERR):
                        errors.add(Error.BUS)
                        row = bytearray()
                    came = max(1, wanted + fault.extra_beats)
                    if came != wanted:
                        errors.add(Error.SHORT)
                        row = row[:came * config.memory_bytes]
        size = config.beat_bytes
        planes = 1 if header["kind"] == Kind.COARSE else 2 // config.planes_per_beat
        row += bytes(planes * size - len(row))
        for plane in range(planes):
            word = int.from_bytes(row[plane * size:(plane + 1) * size], "little")
            beats.append({**header, "data": word, "last": int(plane == planes - 1)})
    return beats, statuses


def run(config, memory, requests, **options):
    beats, statuses = expected(config, memory, requests)
    dut = RowReader(config)
    result = run_stream_test(
        dut, feeds={"i": requests}, sinks={"o": len(beats), "o_status": len(statuses)},
        testbenches=[memory.serve_read_port(dut.bus)], **options)
    assert result.outputs["o"] == beats
    assert result.outputs["o_status"] == statuses
    assert memory.held_cycles == []
    return result, statuses


@pytest.mark.parametrize("memory_bytes", [4, 8, 16, 32])
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_rows_arrive_in_order(memory_bytes, stall):
    config = config_of(memory_bytes)
    rng = random.Random(memory_bytes)
    memory = MemoryModel(size=SIZE, shuffle=stall > 0, seed=memory_bytes)
    requests = random_requests(config, rng, queries=10, rows=8)
    run(config, memory, requests, seed=1, stall_probability=stall)
    assert memory.reads == [(asked["place"]["address"], bus_beats(config, asked))
                            for asked in requests if "place" in asked]


@pytest.mark.parametrize("memory_bytes", [4, 8, 16, 32])
@pytest.mark.parametrize("fault", [
    {"response": SLVERR}, {"response": DECERR}, {"extra_beats": -1}, {"extra_beats": -3},
    {"extra_beats": 1}, {"extra_beats": 2}, {"response": SLVERR, "extra_beats": -1},
], ids=str)
def test_bad_bursts_are_told_and_leave_no_trace(memory_bytes, fault):
    config = config_of(memory_bytes)
    rng = random.Random(str((memory_bytes, fault)))
    memory = MemoryModel(size=SIZE, seed=memory_bytes)
    memory.faults = [Fault(0x400, 0x900, **fault)]
    requests = random_requests(config, rng, queries=15, rows=6, faults=0.08)
    _, statuses = run(config, memory, requests, seed=2, stall_probability=0.3)
    assert len({status["error"] for status in statuses}) > 1


def test_faulty_rows_are_not_read():
    memory = MemoryModel(size=SIZE)
    run(TINY, memory, [request(TINY, 0x40, fault=1), request(TINY, 0x80), END], seed=0)
    assert memory.reads == [(0x80, 2)]


def test_latency():
    memory = MemoryModel(size=SIZE, latency=10)
    result, _ = run(TINY, memory, [END, request(TINY, 0x40), END], seed=0)
    end, row, last = result.input_cycles["i"]
    first_beat, second_beat = memory.beat_cycles
    assert (first_beat, second_beat) == (row + 10, row + 11)
    # An END passes at once; a row's beats 2 cycles after they came; the END behind it follows.
    assert result.output_cycles["o"] == [end + 1, first_beat + 2, second_beat + 2, second_beat + 3]
    assert result.output_cycles["o_status"] == [end + 2, second_beat + 4]
    assert last == row + 1


@pytest.mark.parametrize("kind", [Kind.FULL, Kind.COARSE])
@pytest.mark.parametrize("memory_bytes", [4, 16, 32])
def test_one_bus_beat_per_cycle(kind, memory_bytes):
    config = config_of(memory_bytes, read_rows=32)
    memory = MemoryModel(size=SIZE, latency=20)
    requests = [request(config, 32 * n, kind) for n in range(100)]
    run(config, memory, [*requests, END], seed=0)
    beats = 100 * bus_beats(config, requests[0])
    assert memory.beat_cycles == list(range(20, 20 + beats))


def test_no_more_rows_are_asked_for_than_fit():
    config = config_of(16, read_rows=4)
    memory = MemoryModel(size=SIZE)
    dut = RowReader(config)
    with pytest.raises(TimeoutError, match="i took 4 of 20"):
        run_stream_test(dut, feeds={"i": [request(config, 32 * n) for n in range(20)]}, sinks={},
                        seed=0, timeout_cycles=60, testbenches=[memory.serve_read_port(dut.bus)])
    assert len(memory.beat_cycles) == 8
    assert memory.held_cycles == []


def test_refuses_what_is_no_config():
    with pytest.raises(TypeError, match="^RowReader config must be an AttentionConfig, not None$"):
        RowReader(None)
