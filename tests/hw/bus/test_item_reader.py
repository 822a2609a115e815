import random

import pytest

from hw.bus.item_reader import ItemReader
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import Fault, MemoryModel

SIZES = [(8, 64), (16, 64), (64, 64), (8, 16), (16, 16), (64, 16), (8, 8), (32, 8)]


def run(data_bytes, item_bytes, runs, *, seed, bad=(), stall=0.3):
    memory = MemoryModel(size=1 << 14, seed=seed, shuffle=stall > 0)
    memory.faults = [Fault(line, line + 64, response=2) for line in bad]
    dut = ItemReader(address_bits=20, data_bytes=data_bytes, item_bytes=item_bytes)
    count = sum(items for _, items in runs)
    result = run_stream_test(
        dut, feeds={"i": [{"address": a, "items": n} for a, n in runs]}, sinks={"o": count},
        seed=seed, stall_probability=stall, quiet_cycles=100,
        testbenches=[memory.serve_read_port(dut.bus)])
    expected = []
    for address, items in runs:
        for item in range(items):
            start = address + item * item_bytes
            expected.append({
                "data": int.from_bytes(memory.data[start:start + item_bytes], "little"),
                "error": start // 64 * 64 in bad,
                "last": item == items - 1})
    assert result.outputs["o"] == expected
    assert not memory.held_cycles
    return memory


@pytest.mark.parametrize("data_bytes, item_bytes", SIZES)
@pytest.mark.parametrize("seed", [1, 2])
def test_items_come_whole_and_in_order(data_bytes, item_bytes, seed):
    rng = random.Random(seed)
    runs = [(64 * rng.randrange(64), rng.choice([1, 2, 3, 5, 17, 40])) for _ in range(4)]
    memory = run(data_bytes, item_bytes, runs, seed=seed)
    assert memory.reads == [
        (line, 64 // data_bytes) for address, items in runs
        for line in range(address, address + items * item_bytes, 64)]


def test_an_error_marks_its_items_only():
    run(16, 64, [(0, 3)], seed=3, bad={64})
    run(64, 16, [(0, 12)], seed=4, bad={64})


@pytest.mark.parametrize(
    "name, value", [("data_bytes", 24), ("item_bytes", 0), ("item_bytes", 128)])
def test_sizes_are_checked(name, value):
    with pytest.raises(ValueError, match=name):
        ItemReader(**{"address_bits": 20, "data_bytes": 16, "item_bytes": 16, name: value})
