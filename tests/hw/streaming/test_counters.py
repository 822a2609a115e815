import random

import pytest
from amaranth.sim import Simulator

from hw.streaming.counters import Counters
from hw.streaming.register_map import COUNTERS

HELD = ("idle", "output_held", "memory_held", "link_held")
EVENTS = {"beats_read": "beat_read", "beats_written": "beat_written", "beats_link": "beat_link",
          "records_failed": "record_failed", "answers_unknown": "answer_unknown"}
CAUSES = ("idle", "output", "memory", "link")  # the first that holds is the cycle's


@pytest.mark.parametrize("seed", [1, 2])
def test_each_cycle_has_one_cause(seed):
    rng, dut = random.Random(seed), Counters()

    async def script(ctx):
        expected = dict.fromkeys((name for name, _ in COUNTERS), 0)
        for cycle in range(600):
            held = [rng.random() < 0.4 for _ in HELD]
            happens = {name: rng.random() < 0.5 for name in EVENTS}
            clear = rng.random() < 0.01
            for name, value in zip(HELD, held, strict=True):
                ctx.set(getattr(dut, name), value)
            for name, port in EVENTS.items():
                ctx.set(getattr(dut, port), happens[name])
            ctx.set(dut.clear, clear)
            await ctx.tick()
            cause = next((name for name, value in zip(CAUSES, held, strict=True) if value), "busy")
            expected[f"cycles_{cause}"] += 1
            for name in EVENTS:
                expected[name] += happens[name]
            if clear:
                expected = dict.fromkeys(expected, 0)
            found = {name: ctx.get(dut.values[place]) for place, (name, _) in enumerate(COUNTERS)}
            assert found == expected, f"seed {seed}, cycle {cycle}"

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(script)
    simulator.run()
