import random

import pytest

from hw.attention.contexts import context_view
from hw.attention.front import Front
from hw.attention.layouts import Error, Select, command, data_beat
from tests.hw.attention.front_bench import make_entries, run_front
from tests.hw.attention.front_work import Maker
from tests.hw.attention.packing import pack
from tests.hw.attention.reset import ResetMidway
from tests.hw.attention.rows import make_config

CONFIG = make_config(contexts=8, encoder_sets=2)
WEIGHT_ROWS = 2 * CONFIG.encoder_sets * CONFIG.code_bits
LENGTHS = {0: (0, 100), 1: (60, 1024), 2: (1024, 1024), 3: (7, 20), 4: (1, 1024)}


def bench(config=CONFIG, seed=1, lengths=None):
    rng = random.Random(seed)
    entries = make_entries(config, rng, lengths or LENGTHS)
    return rng, entries, Maker(config, rng, entries)


# Commands that fail: error, and what makes the command.
REFUSED = {
    **{f"opcode {opcode}": (Error.OPCODE, lambda maker, opcode=opcode: maker.unknown(opcode))
       for opcode in range(3, 8)},
    "query, no context": (Error.CONTEXT, lambda maker: maker.query(5)),
    "query, context far out": (Error.CONTEXT, lambda maker: maker.query(0xFFFF)),
    "query, empty": (Error.EMPTY, lambda maker: maker.query(0)),
    "query, empty, visible": (Error.EMPTY, lambda maker: maker.query(0, visible=1)),
    "query, visible": (Error.VISIBLE, lambda maker: maker.query(1, visible=61)),
    "query, visible, top bit": (
        Error.VISIBLE, lambda maker: maker.query(1, visible=1 << 31, select=Select.DENSE)),
    "query, budget": (Error.BUDGET, lambda maker: maker.query(1, full=30, coarse=31)),
    "query, budget of the visible": (
        Error.BUDGET, lambda maker: maker.query(1, visible=40, full=41, coarse=0)),
    "query, budget beyond a carry": (
        Error.BUDGET, lambda maker: maker.query(1, full=(1 << 27) - 1, coarse=1)),
    "query, early": (Error.DATA, lambda maker: maker.query(1, extra=-1)),
    "query, codes early": (Error.DATA, lambda maker: maker.query(1, has_code=1, extra=-1)),
    "query, no codes": (Error.DATA, lambda maker: maker.query(1, has_code=1, extra=-4)),
    "query, late": (Error.DATA, lambda maker: maker.query(1, extra=1)),
    "query, dense, late": (Error.DATA, lambda maker: maker.query(1, select=Select.DENSE, extra=9)),
    "append, no context": (Error.CONTEXT, lambda maker: maker.append(5, 2)),
    "append, capacity": (Error.CAPACITY, lambda maker: maker.append(3, 14)),
    "append, full context": (Error.CAPACITY, lambda maker: maker.append(2, 1, has_code=1)),
    "append, nothing": (Error.DATA, lambda maker: maker.append(1, 0)),
    "append, early": (Error.DATA, lambda maker: maker.append(1, 3, extra=-1)),
    "append, a token early": (Error.DATA, lambda maker: maker.append(1, 3, extra=-5)),
    "append, code early": (Error.DATA, lambda maker: maker.append(1, 1, has_code=1, extra=-1)),
    "append, late": (Error.DATA, lambda maker: maker.append(1, 3, extra=7)),
    "append, key NaN": (Error.EXPONENT, lambda maker: maker.append(1, 3, nan=(1, 0))),
    "append, value NaN": (Error.EXPONENT, lambda maker: maker.append(1, 3, nan=(2, 1))),
    "append, NaN then early": (
        Error.EXPONENT, lambda maker: maker.append(1, 3, nan=(0, 0), extra=-1)),
    "append, NaN and early": (
        Error.DATA, lambda maker: maker.append(1, 3, nan=(2, 0), extra=-1)),
    "append, window": (Error.WINDOW, lambda maker: maker.append(1, 3, fault=(1, Error.WINDOW))),
    "append, write": (Error.WRITE, lambda maker: maker.append(1, 3, fault=(2, Error.WRITE))),
    "append, window then late": (
        Error.WINDOW, lambda maker: maker.append(1, 3, fault=(0, Error.WINDOW), extra=2)),
    "weights, past the end": (Error.CAPACITY, lambda maker: maker.weights(WEIGHT_ROWS - 2, 3)),
    "weights, index past": (Error.CAPACITY, lambda maker: maker.weights(0xFFFF, 1)),
    "weights, nothing": (Error.DATA, lambda maker: maker.weights(0, 0)),
    "weights, early": (Error.DATA, lambda maker: maker.weights(5, 3, extra=-1)),
    "weights, late": (Error.DATA, lambda maker: maker.weights(5, 3, extra=1)),
}


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["opcode", "query", "append", "weights"])
def test_refused_command_leaves_the_next_one_working(kind, stall):
    rng, entries, maker = bench(seed=len(kind))
    cases = [case for name, case in REFUSED.items() if name.split(",")[0].startswith(kind)]
    assert len(cases) >= 5
    works, expected = [], []
    for number, (error, make) in enumerate(cases):
        fine = [
            (maker.query(2, has_code=number % 2), None), (maker.append(4, 1), Error.NONE),
            (maker.weights(WEIGHT_ROWS - 1, 1), Error.NONE)][number % 3]
        works += [make(maker), make(maker), fine[0]]
        expected += [error, error, fine[1]]
    # Of the refused appends nothing stays: those after them find the room they left.
    works += [maker.append(1, 1, has_code=1), maker.append(3, 13), maker.append(1, 3)]
    expected += [Error.NONE] * 3
    _, errors, around = run_front(CONFIG, entries, works, rng, stall_probability=stall)
    assert errors == expected
    assert (around.entries[1]["length"], around.entries[3]["length"]) == (64, 20)


@pytest.mark.parametrize("select", Select)
def test_budget_is_checked_for_budget_queries_alone(select):
    rng, entries, maker = bench()
    works = [maker.query(1, select=select, full=60, coarse=1)]
    _, errors, _ = run_front(CONFIG, entries, works, rng)
    assert errors == [Error.BUDGET if select == Select.BUDGET else None]


def test_limits_are_accepted():
    rng, entries, maker = bench(lengths={1: (60, 64), 2: (1024, 1024)})
    works = [
        maker.query(1, visible=60, full=60, coarse=0), maker.query(1, visible=1, full=0, coarse=1),
        maker.query(2, full=0, coarse=1024), maker.append(1, 4), maker.query(1, visible=64),
        maker.weights(0, WEIGHT_ROWS)]
    _, errors, around = run_front(CONFIG, entries, works, rng)
    assert errors == [None, None, None, Error.NONE, None, Error.NONE]
    assert around.entries[1]["length"] == 64


def random_work(maker, rng):
    """Any command; two in three are fine."""
    kind = rng.random()
    extra = rng.choice([0] * 12 + [-1, 1, 3])
    has_code = rng.randrange(2)
    if kind < 0.6:
        context = rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 9])
        visible = rng.choice([0, 0, 0, 0, 5, 5, 2000])
        return maker.query(context, has_code=has_code, select=rng.choice(list(Select)),
                           visible=visible, extra=extra)
    if kind < 0.9:
        count = rng.randint(1, 4)
        nan = (rng.randrange(count), rng.randrange(2)) if rng.random() < 0.1 else None
        fault = (rng.randrange(count), Error.WRITE) if rng.random() < 0.1 else None
        return maker.append(rng.choice([0, 1, 1, 3, 3, 7]), count, has_code=has_code, extra=extra,
                            nan=nan, fault=fault)
    if kind < 0.96:
        return maker.weights(rng.randrange(8), rng.randint(1, 3), extra=extra)
    return maker.unknown(rng.randint(3, 7))


CONFIGS = [
    make_config(contexts=4, query_slots=2, memory_bytes=4),
    make_config(contexts=4, group=4, query_bits=8, memory_bytes=8),
    make_config(contexts=4, group=8, query_slots=8, memory_bytes=32, code_bits=128),
    make_config(contexts=4, group=8, query_bits=8, query_slots=3, memory_bytes=32, code_bits=32),
    make_config(contexts=4, head_dim=64, group=4, memory_bytes=64, exponent_block=64),
    make_config(contexts=4, head_dim=64, memory_bytes=32, code_bits=256, encoder_sets=64),
]


@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: (
    f"d{config.head_dim}-w{config.memory_bytes}-g{config.group}-q{config.query_bits}"))
def test_any_commands_in_any_order(config, stall):
    rng, entries, maker = bench(config, seed=config.memory_bytes + config.group)
    works = [random_work(maker, rng) for _ in range(30)]
    _, errors, around = run_front(config, entries, works, rng, stall_probability=stall,
                                  encoder_delay=rng.choice([0, 7]))
    assert {None, Error.NONE} <= set(errors)
    assert len(around.slots) == errors.count(None) >= 7


@pytest.mark.parametrize("query_slots", [2, 5])
def test_a_query_without_a_slot_waits_before_its_data(query_slots):
    config = make_config(query_slots=query_slots)
    rng, entries, maker = bench(config)
    works = [maker.query(1, has_code=1) for _ in range(query_slots)]
    run_front(config, entries, works, rng, keep_slots=True)
    # One more is neither loaded nor issued; a command that needs no slot would wait behind it.
    per_query = len(works[0].beats(config, rng))
    with pytest.raises(TimeoutError, match=f"i_data took {query_slots * per_query} of"):
        run_front(config, entries, [*works, maker.query(1, has_code=1)], rng, keep_slots=True,
                  timeout_cycles=400)
    # With the slots in use, what needs none goes on, and what is refused is refused at once.
    _, errors, _ = run_front(config, entries,
                             [*works, maker.append(1, 2), maker.query(0), maker.weights(0, 1)],
                             rng, keep_slots=True)
    assert errors[query_slots:] == [Error.NONE, Error.EMPTY, Error.NONE]


def test_every_slot_is_used_and_given_back():
    rng, entries, maker = bench()
    works = [maker.query(1, select=Select.DENSE) for _ in range(40)]
    _, _, around = run_front(CONFIG, entries, works, rng)
    assert len(around.slots) == 40
    assert set(around.slots) == set(range(CONFIG.query_slots))


def test_a_query_that_fails_keeps_no_slot():
    rng, entries, maker = bench()
    works = [maker.query(1, extra=extra) for extra in (-1, 2) * 10] + [
        maker.query(1) for _ in range(CONFIG.query_slots)]
    _, errors, _ = run_front(CONFIG, entries, works, rng, keep_slots=True)
    assert errors == [Error.DATA] * 20 + [None] * CONFIG.query_slots


@pytest.mark.parametrize("group", [1, 4])
def test_cycles_of_a_query(group):
    config = make_config(group=group)
    beats = 4  # of a head; those of the codes are half a beat per head
    code_beats = {1: 1, 4: 2}[group]
    dense_cycles = group * (beats + 1)
    rng, entries, maker = bench(config)
    works = [maker.query(1, select=Select.DENSE), maker.query(1, has_code=1),
             maker.query(1, select=Select.DENSE)]
    result, _, _ = run_front(config, entries, works, rng)
    commands, data, jobs = (
        result.input_cycles["i_command"], result.input_cycles["i_data"],
        result.output_cycles["o_job"])
    assert commands[0] == 0
    assert data[0] == 3
    assert data[group * beats - 1] == 3 + dense_cycles - 2
    assert jobs[0] == data[group * beats - 1] + 3
    assert jobs[0] == result.output_cycles["o_issued"][0]
    # The next command is taken behind the job, and held for its beats, its records and 5 cycles.
    assert commands[1] == jobs[0] + 1 == dense_cycles + 5
    assert commands[2] - commands[1] == dense_cycles + code_beats + 1 + 5


@pytest.mark.parametrize("delay", [0, 9])
def test_cycles_from_the_last_code_to_the_job(delay):
    config = make_config(group=4)
    rng, entries, maker = bench(config)
    result, _, around = run_front(config, entries, [maker.query(1)], rng, encoder_delay=delay)
    requests, codes = result.output_cycles["o_encode"], around.codes.cycles
    # A request leaves in the cycle after its vector's last beat.
    assert requests == [cycle + 1 for cycle in result.input_cycles["i_data"][3::4]]
    assert codes == [cycle + 1 + delay for cycle in requests]
    assert result.output_cycles["o_job"] == [codes[-1] + 2]


def test_cycles_of_refused_commands():
    rng, entries, maker = bench()
    result, _, _ = run_front(CONFIG, entries, [maker.query(0), maker.query(1, extra=3)], rng)
    data, statuses = result.input_cycles["i_data"], result.output_cycles["o_status"]
    # A whole query's data are dropped, a beat per cycle.
    assert data[:4] == [3, 4, 5, 6]
    assert statuses[0] == 8
    assert result.input_cycles["i_command"][1] == statuses[0] + 1
    assert statuses[1] == data[-1] + 2


def test_cycles_of_an_append_and_of_weights():
    rng, entries, maker = bench()
    result, _, around = run_front(CONFIG, entries, [maker.append(1, 2), maker.weights(0, 3)], rng)
    data, rows = result.input_cycles["i_data"], result.output_cycles["o_append"]
    # Five beats for K, V and exponents; the row leaves in the cycle after the last.
    assert data[:10] == [3, 4, 5, 6, 7, 9, 10, 11, 12, 13]
    assert rows == [8, 14]
    written = around.answers.cycles[0]
    assert result.output_cycles["o_length"] == [written + 1]
    assert result.output_cycles["o_status"][0] == written + 2
    start = result.input_cycles["i_command"][1]
    assert start == written + 3
    assert result.output_cycles["o_weight"] == [start + 5, start + 8, start + 11]
    assert result.output_cycles["o_status"][1] == start + 12


@pytest.mark.parametrize("cycles", [2, 4, 7, 9, 30])
@pytest.mark.parametrize("kind", ["query", "codes", "append", "weights", "unknown"])
def test_reset_in_the_middle_of_a_command(kind, cycles):
    rng, entries, maker = bench(seed=cycles)
    first = {
        "query": lambda: maker.query(1), "codes": lambda: maker.query(1, has_code=1),
        "append": lambda: maker.append(1, 4), "weights": lambda: maker.weights(0, 4),
        "unknown": lambda: maker.unknown(6)}[kind]()
    # Codes and write responses never come: later resets find the command waiting for them.
    script = {
        "i_command": [pack(command(CONFIG), first.command)],
        "i_view": [pack(context_view(CONFIG), {"valid": 1, "entry": entries[1]})],
        "i_data": [pack(data_beat(CONFIG), beat) for beat in first.beats(CONFIG, rng)],
    }
    works = [maker.query(1), maker.append(1, 3), maker.weights(2, 2), maker.query(1, has_code=1)]
    dut = ResetMidway(Front(CONFIG), script=script, cycles=cycles)
    _, errors, around = run_front(CONFIG, entries, works, rng, dut=dut)
    assert errors == [None, Error.NONE, Error.NONE, None]
    assert around.entries[1]["length"] == 63


def test_idle_tells_whether_a_command_is_held_or_offered():
    rng, entries, maker = bench()
    seen = []

    async def watch(ctx):
        async for _, _, idle, valid in ctx.tick().sample(dut.idle, dut.i_command.valid):
            seen.append((idle, valid))

    dut = Front(CONFIG)
    result, _, _ = run_front(CONFIG, entries, [maker.unknown(7)], rng, dut=dut, testbenches=[watch])
    status = result.output_cycles["o_status"][0]
    assert [idle for idle, _ in seen[:status + 1]] == [0] * (status + 1)
    assert all(idle for idle, _ in seen[status + 1:])
    assert seen[0] == (0, 1)


def test_bad_config():
    with pytest.raises(TypeError, match="Front config must be an AttentionConfig, not 'tiny'"):
        Front("tiny")
