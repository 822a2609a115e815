"""Chains of descriptors against golden, in Amaranth's simulator."""

import random

import pytest
from amaranth.lib import data

from golden.streaming.chain import DESCRIPTOR_BYTES, FENCE, LINKED, pack_descriptor, walk
from golden.streaming.copy import Copy
from hw.streaming.descriptor_fetch import DescriptorFetch
from hw.streaming.descriptors import Descriptors, descriptor
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import Fault, MemoryModel
from tests.hw.streaming.copies import fields, make_config

SIZE = 1 << 14
ADDRESS_BITS = 20


def random_command(rng, **change):
    values = {name: rng.getrandbits(bits) for name, bits in (
        ("source", ADDRESS_BITS), ("destination", ADDRESS_BITS), ("row_bytes", 32), ("rows", 16),
        ("source_stride", 32), ("destination_stride", 32), ("kind", 1), ("tag", 16),
        ("window_mask", 2))}
    return Copy(**{**values, **change})


class Chains:
    """A memory with chains in it, and what golden reads there."""

    def __init__(self, seed, *, latency=5, shuffle=False):
        self.rng = random.Random(seed)
        self.model = MemoryModel(size=SIZE, latency=latency, shuffle=shuffle, seed=seed)
        self.free = 0
        self.doorbells = []
        self.expected = []

    def put(self, commands, *, jump=0.0, fence=0.0):
        """Write a chain, parts of which lie elsewhere; returns the address of each descriptor."""
        places = []
        for _ in commands:
            self.free += DESCRIPTOR_BYTES * (self.rng.randrange(2, 9) if self.rng.random() < jump
                                             else 1)
            places.append(self.free)
        for index, (command, place) in enumerate(zip(commands, places, strict=True)):
            following = places[index + 1] if index + 1 < len(places) else None
            self.model.data[place:place + DESCRIPTOR_BYTES] = pack_descriptor(
                command, following=following, fence=self.rng.random() < fence)
        return places

    def ring(self, address, *, limit=100, tag=None):
        """Add a doorbell, when all of memory and its faults are as they are to be."""
        tag = self.rng.getrandbits(16) if tag is None else tag
        self.doorbells.append({"address": address, "limit": limit, "tag": tag})
        self.expected += walk(
            self.model.data, address, limit=limit, tag=tag, address_bits=ADDRESS_BITS,
            read_fails=lambda at: any(fault.low <= at < fault.high for fault in self.model.faults))

    def run(self, bus_bytes, *, seed=1, stall=0.0, commands=(), engine=None, **options):
        unit = Descriptors(make_config(bus_bytes, address_bits=ADDRESS_BITS))
        result = run_stream_test(
            unit, seed=seed, stall_probability=stall,
            feeds={"i_chain": self.doorbells, "i_command": [fields(each) for each in commands]},
            sinks={"o": len(self.expected) + len(commands)},
            testbenches=[self.model.serve_read_port(unit.bus),
                         *([engine(unit)] if engine else [])], **options)
        assert not self.model.held_cycles
        return result

    def check(self, tasks):
        """All tasks are those of the chains, in order."""
        assert len(tasks) == len(self.expected)
        for task, (command, error) in zip(tasks, self.expected, strict=True):
            assert task["fault"].value == error
            if error in (0, 4) and command.row_bytes:
                want = fields(command)
                top = (1 << ADDRESS_BITS) - 1
                want.update(source=command.source & top, destination=command.destination & top)
                assert {**task["command"], "kind": task["command"]["kind"].value} == want
            assert task["command"]["tag"] == command.tag


def test_layout_is_that_of_golden():
    command = random_command(random.Random(1))
    packed = pack_descriptor(command, following=0x1234567890, fence=True)
    found = data.Const(descriptor(), int.from_bytes(packed, "little"))
    assert found.next == 0x1234567890
    assert found.flags == LINKED | FENCE
    for name, value in fields(command).items():
        assert found[name] == value


@pytest.mark.parametrize("bus_bytes", [8, 16, 32, 64])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_chains(bus_bytes, stall):
    chains = Chains(bus_bytes, shuffle=stall > 0)
    for length in (1, 2, 7, 1, 3, 12):
        places = chains.put([random_command(chains.rng) for _ in range(length)], jump=0.3)
        chains.ring(places[0], limit=chains.rng.choice([length, 100]))
    chains.check(chains.run(bus_bytes, stall=stall).outputs["o"])


@pytest.mark.parametrize("bus_bytes", [8, 64])
def test_chains_that_are_refused(bus_bytes):
    """Each refused chain ends with one error, and the next is right."""
    chains = Chains(20 + bus_bytes, shuffle=True)
    rng = chains.rng

    def put(count=4, **options):
        return chains.put([random_command(rng) for _ in range(count)], **options)

    def spoil(places, index, offset, value):
        chains.model.data[places[index] + offset] = value
        return places[0]

    good = put(2)[0]
    failing = put(4)
    chains.model.faults.append(Fault(failing[2], failing[2] + 64, response=2))
    past_end = put(1)[0]
    chains.model.data[past_end + 1] = LINKED
    chains.model.data[past_end + 8:past_end + 16] = (SIZE + 64).to_bytes(8, "little")
    chains.model.faults.append(Fault(SIZE, 1 << ADDRESS_BITS, response=3))
    for address, limit in (
        (failing[0], 9), (spoil(put(), 1, 0, 2), 9), (spoil(put(), 1, 0, 255), 9),
        (spoil(put(), 2, 1, LINKED | 4), 9), (spoil(put(), 0, 8, 1), 9),
        (spoil(put(), 0, 12, 1), 9), (spoil(put(), 1, 19, 1), 9), (spoil(put(), 1, 31, 1), 9),
        (put()[0], 3), (put()[0], 0), (put()[0] + 32, 9), (past_end, 9),
    ):
        chains.ring(address, limit=limit)
        chains.ring(good)
    assert {error.name for _, error in chains.expected} == {
        "NONE", "KIND", "ADDRESS", "FETCH", "CYCLE"}
    chains.check(chains.run(bus_bytes, stall=0.2).outputs["o"])


def test_cycle_ends():
    chains = Chains(3)
    places = chains.put([random_command(chains.rng) for _ in range(3)])
    last = places[-1]
    chains.model.data[last + 1] = LINKED
    chains.model.data[last + 8:last + 16] = places[0].to_bytes(8, "little")
    chains.ring(places[0], limit=50, tag=7)
    result = chains.run(16)
    chains.check(result.outputs["o"])
    assert len(chains.expected) == 51


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_ready_made_commands_share_the_engine(stall):
    chains = Chains(4)
    chains.ring(chains.put([random_command(chains.rng, tag=index) for index in range(10)])[0])
    commands = [random_command(chains.rng, tag=0x8000 + index) for index in range(30)]
    tasks = chains.run(16, commands=commands, stall=stall).outputs["o"]
    own = [task for task in tasks if task["command"]["tag"] & 0x8000]
    assert [{**task["command"], "kind": task["command"]["kind"].value} for task in own] == [
        fields(command) for command in commands]
    chains.check([task for task in tasks if not task["command"]["tag"] & 0x8000])


def test_fence():
    """A fenced command waits until the engine has been idle after all that came before."""
    chains = Chains(5)
    chains.ring(chains.put([random_command(chains.rng) for _ in range(6)], fence=1.0)[0])
    accepted, ended = [], []

    def engine(unit):
        async def run(ctx):
            """Each task takes 30 cycles."""
            cycle, open_until = 0, []
            while True:
                ctx.set(unit.engine_busy, bool(open_until))
                _, _, valid, ready = await ctx.tick().sample(unit.o.valid, unit.o.ready)
                cycle += 1
                if open_until and open_until[0] <= cycle:
                    ended.append(open_until.pop(0))
                if valid and ready:
                    accepted.append(cycle)
                    open_until.append(cycle + 30)
        return run

    chains.check(chains.run(16, engine=engine, quiet_cycles=60).outputs["o"])
    for end, begin in zip(ended, accepted[1:], strict=False):
        assert end < begin < end + 5


@pytest.mark.parametrize("begin", [2, 30, 41, 60])
def test_abort_ends_the_chain(begin):
    chains = Chains(6)
    chains.ring(chains.put([random_command(chains.rng, tag=n) for n in range(40)])[0], tag=99)
    whole, chains.expected = chains.expected, []
    unit_seen = []

    def engine(unit):
        async def run(ctx):
            unit_seen.append(unit)
            for cycle in range(1000):
                ctx.set(unit.abort, cycle == begin)
                await ctx.tick()
        return run

    chains.doorbells.append({**chains.doorbells[0], "limit": 2, "tag": 98})
    unit = Descriptors(make_config(16, address_bits=ADDRESS_BITS))
    result = run_stream_test(
        unit, seed=1, feeds={"i_chain": chains.doorbells}, sinks={"o": None}, quiet_cycles=60,
        testbenches=[chains.model.serve_read_port(unit.bus), engine(unit)])
    found = [(task["command"]["tag"], task["fault"].name) for task in result.outputs["o"]]
    ends = found.index((99, "ABORTED"))
    assert 0 <= ends < len(whole)
    assert found[:ends] == [(tag, "NONE") for tag in range(ends)]
    assert found[ends + 1:] == [(0, "NONE"), (1, "NONE"), (98, "CYCLE")]


def test_latency_and_reading_ahead():
    """From doorbell to read, from last beat to command; and four descriptors on their way."""
    for bus_bytes in (8, 16, 32, 64):
        beats = DESCRIPTOR_BYTES // bus_bytes
        chains = Chains(7, latency=20)
        chains.ring(chains.put([random_command(chains.rng) for _ in range(12)])[0])
        result = chains.run(bus_bytes)
        chains.check(result.outputs["o"])
        start, out = result.input_cycles["i_chain"][0], result.output_cycles["o"]
        assert chains.model.beat_cycles[0] == start + 1 + 20
        assert out[0] == chains.model.beat_cycles[beats - 1] + 4
        # Four descriptors per latency, or as fast as their beats come and are put together.
        pace = max(beats + 1, -(-(20 + 3 + beats) // 4))
        assert out[-1] - out[0] <= 11 * pace + 4 * beats
        reads = [address for address, _ in chains.model.reads]
        assert reads == [64 * (n + 1) for n in range(len(reads))]
        assert 12 <= len(reads) <= 16


def test_ready_made_commands_pass_within_the_cycle():
    chains = Chains(8)
    result = chains.run(16, commands=[random_command(chains.rng) for _ in range(20)])
    assert result.output_cycles["o"] == result.input_cycles["i_command"]
    cycles = result.output_cycles["o"]
    assert cycles == list(range(cycles[0], cycles[0] + 20))


def test_configuration_is_checked():
    for part in (Descriptors, DescriptorFetch):
        with pytest.raises(TypeError, match=f"{part.__name__} config must be a StreamingConfig"):
            part(None)
