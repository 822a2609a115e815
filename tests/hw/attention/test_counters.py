import random

import pytest

from hw.attention.counters import Counters
from hw.attention.layouts import Error
from hw.attention.register_map import COUNTERS
from tests.hw.harness import run_stream_test

EVENTS = ("matching", "scanning", "beat_read", "beat_written", "rejected")
CONDITIONS = ("idle", "output_held", "memory_held")
NAMES = {"matching": "cycles_matching", "scanning": "cycles_scanning", "beat_read": "beats_read",
         "beat_written": "beats_written", "rejected": "contexts_rejected"}


def cause(idle, output_held, memory_held):
    return ("cycles_idle" if idle else "cycles_output" if output_held
            else "cycles_memory" if memory_held else "cycles_busy")


@pytest.mark.parametrize("seed", [1, 2])
def test_every_event_is_counted_and_every_cycle_has_one_cause(seed):
    rng = random.Random(seed)
    counts = dict.fromkeys((name for name, _ in COUNTERS), 0)
    checked = []

    async def testbench(ctx):
        since_clear = 0
        for cycle in range(400):
            values = {name: int(rng.random() < 0.4) for name in (*EVENTS, *CONDITIONS, "closed")}
            error = rng.choice(list(Error))
            clear = cycle == 150
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.error, error)
            ctx.set(dut.clear, clear)
            counted = [NAMES[name] for name in EVENTS if values[name]]
            counted.append(cause(*(values[name] for name in CONDITIONS)))
            if values["closed"]:
                counted.append("commands")
                if error != Error.NONE:
                    counted.append(f"errors_{error.name.lower()}")
            for name in counted:
                counts[name] += 1
            since_clear += 1
            if clear:
                counts.update(dict.fromkeys(counts, 0))
                since_clear = 0
            await ctx.tick()
            shown = {name: ctx.get(dut.values[place]) for place, (name, _) in enumerate(COUNTERS)}
            assert shown == counts
            assert sum(counts[f"cycles_{name}"]
                       for name in ("busy", "memory", "output", "idle")) == since_clear
            assert sum(n for name, n in counts.items() if name.startswith("errors_")) <= \
                counts["commands"]
        checked.append(counts["errors_write"] and counts["cycles_busy"])

    dut = Counters()
    run_stream_test(dut, feeds={}, sinks={}, seed=seed, quiet_cycles=410, testbenches=[testbench])
    assert len(checked) == 1
    assert checked[0] > 0
