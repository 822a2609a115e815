"""What the golden DRAM scheduler reaches: the figures that the hardware will be held against."""

import numpy as np

from golden.memory.dram import check
from golden.memory.limits import refresh_limited
from golden.memory.requests import sequential, uniform
from golden.memory.run import run
from golden.memory.scheduler import Settings
from hw.memory.timings import PARTS

__all__ = ["GROUPS"]

STEPS = {"ddr5-4800": 2, "lpddr5-6400": 1}   # nCK between decisions
LINES = 1 << 16
SERIES = 4      # series of refreshes that a measurement spans
WARM_UP = 1     # series before it


def _use(name, kind, refreshes, *, outstanding=32, **options):
    """Share of the data bus's time with data, over whole periods of ``refreshes`` in a row."""
    part = PARTS[name]
    requests = _requests(part, kind, refreshes)
    settings = Settings(**{"step": STEPS[name], "refresh_start": refreshes, **options})
    found = run(part, requests.line, requests.writes, settings, outstanding)
    violations = check(found.trace, part, found.cycles)
    if violations:
        raise AssertionError(f"the trace breaks rules: {violations[:3]}")
    period = refreshes * part.refi
    begin, end = WARM_UP * period, (WARM_UP + SERIES) * period
    if found.cycles < end:
        raise ValueError(f"requests must last {end} nCK, not {found.cycles}")
    inside = np.count_nonzero((found.done > begin) & (found.done <= end))
    return inside * part.burst / (end - begin)


def _requests(part, kind, refreshes):
    count = (WARM_UP + SERIES + 1) * refreshes * part.refi // part.burst
    if kind in ("read", "write"):
        return uniform(count, LINES, write_share=float(kind == "write"), seed=1)
    if kind == "mixed":
        return uniform(count, LINES, write_share=0.5, seed=1)
    return sequential(count, writes=kind == "sequential_write")


def golden_scheduler():
    """Shares of the peak, of sequential traffic of the refresh-limited peak."""
    figures = {}
    for name, part in PARTS.items():
        prefix = f"memory.model.{name.lower()}"
        for refreshes in (1, 2, part.postpone):
            for kind in ("sequential_read", "sequential_write"):
                use = _use(name, kind, refreshes)
                figures[f"{prefix}.{kind}.refreshes_{refreshes}"] = use / refresh_limited(part)
        for outstanding in (16, 32, 64):
            for kind in ("read", "write", "mixed"):
                figures[f"{prefix}.random_{kind}.outstanding_{outstanding}"] = _use(
                    name, kind, part.postpone, outstanding=outstanding,
                    reads=max(32, outstanding), writes=max(32, outstanding))
    figures["memory.model.ddr5-4800.random_read.step_4"] = _use(
        "ddr5-4800", "read", 4, step=4)
    figures["memory.model.ddr5-4800.random_mixed.drain_low_0"] = _use(
        "ddr5-4800", "mixed", 4, drain_low=0)
    return {key: round(float(value), 4) for key, value in figures.items()}


GROUPS = {"dram": golden_scheduler}
