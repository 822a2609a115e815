"""Merged states equal golden in every bit, empty ones and the farthest apart included."""

import random
from itertools import product

import cocotb
import numpy as np

from golden.merge import merge
from golden.state import State
from sim.scoreboard import Scoreboard
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import arguments, cycles, reset, start
from tests.states import extreme_states, full_state_beats, make_state


def make_pairs(count):
    """Pairs near and far, then each kind of empty and extreme pair."""
    rng = np.random.default_rng(random.getrandbits(64))
    head_dim = arguments()["head_dim"]
    states = [make_state(rng, head_dim=head_dim, octaves=reach, exponents=reach)
              for reach in rng.choice([0, 3, 70], 2 * count)]
    special = [State.empty(head_dim), states[0], *extreme_states(rng, head_dim=head_dim)]
    return [*zip(states[::2], states[1::2], strict=True), *product(special, repeat=2)]


def beats_of(states):
    lanes = arguments()["result_lanes"]
    return [beat for state in states for beat in full_state_beats(state, lanes)]


def feed(dut, pairs, *, idle=0.0):
    """Queue the pairs on both inputs, each of which pauses on its own."""
    sources = [StreamSource(dut, name, idle_probability=idle) for name in ("i_a", "i_b")]
    for source, states in zip(sources, zip(*pairs, strict=True), strict=True):
        source.send(beats_of(states))
    return sources


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(idle=[0.0, 0.5], stall=[0.0, 0.5])
async def equals_golden(dut, idle, stall):
    pairs = make_pairs(40)
    wanted = beats_of(merge(a, b) for a, b in pairs)
    scoreboard = Scoreboard("o")
    scoreboard.expect(wanted)
    await start(dut)
    StreamMonitor(dut, "o", on_item=scoreboard.check)
    sink = StreamSink(dut, "o", stall_probability=stall)
    feed(dut, pairs, idle=idle)
    await sink.receive(len(wanted))
    await cycles(dut, 20)
    scoreboard.drain()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def gives_a_beat_per_cycle(dut):
    pairs = make_pairs(20)
    count = len(beats_of(a for a, _ in pairs))
    await start(dut)
    sink = StreamSink(dut, "o")
    feed(dut, pairs)
    await sink.receive(count)
    assert sink.times == list(range(sink.times[0], sink.times[0] + count))


@cocotb.test(timeout_time=100, timeout_unit="us")
async def forgets_what_was_inside_at_a_reset(dut):
    pairs = make_pairs(10)
    await start(dut)
    sources = feed(dut, pairs)
    await cycles(dut, 20)
    for source in sources:
        source.stop()
    await reset(dut)
    wanted = beats_of(merge(a, b) for a, b in pairs)
    sink = StreamSink(dut, "o")
    feed(dut, pairs)
    assert await sink.receive(len(wanted)) == wanted
