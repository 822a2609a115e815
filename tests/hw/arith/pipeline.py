"""Drive a unit of fixed latency in the Amaranth simulator."""

import random

from amaranth.sim import Simulator

from tests.hw.harness import plain


def run_pipeline(dut, inputs, outputs, *, latency, seed=0, pause_probability=0.0):
    """Present one dict of inputs per enabled cycle; return a dict of ``outputs`` for each.

    The outputs are those that ``latency`` enabled cycles make of the inputs. With a
    ``pause_probability``, ``enable`` is low in that share of the cycles, with other inputs
    meanwhile.
    """
    print(f"pipeline test of {type(dut).__name__}: seed={seed} pause={pause_probability}")
    rng = random.Random(seed)
    seen = []

    async def drive(ctx):
        taken = 0
        while len(seen) < len(inputs) + latency:
            pause = rng.random() < pause_probability
            chosen = rng.randrange(len(inputs)) if pause else min(taken, len(inputs) - 1)
            for name, value in inputs[chosen].items():
                ctx.set(getattr(dut, name), value)
            if hasattr(dut, "enable"):
                ctx.set(dut.enable, not pause)
            if not pause:
                taken += 1
                seen.append({name: plain(ctx.get(getattr(dut, name))) for name in outputs})
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return seen[latency:]
