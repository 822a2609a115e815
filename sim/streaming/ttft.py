"""Time to first token and energy against the baselines: ``python -m sim.streaming.ttft``.

Prints a table, and writes ``ttft.json`` (with the project's figure keys) and ``ttft.png`` into
``build/streaming``.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from golden.streaming.balance import plan
from golden.streaming.baselines import all_compute, all_stream, cachegen, cake, static_hybrid
from golden.streaming.energy import Powers
from golden.streaming.greedy import Potential
from golden.streaming.policy import PAPER_POLICY, Policy
from golden.streaming.runtime import Scheduler
from golden.streaming.schedule import lower_bound
from golden.streaming.simulate import simulate
from sim.streaming.plots import ttft_plot
from sim.streaming.scenario import CONDITIONS, TICKS_PER_SECOND, Prompt
from sim.tools import BUILD

__all__ = ["LINKS", "measure", "measure_conditions", "figures"]

LINKS = (80, 160, 480, 640, 1000)
SEEDS = 2
FIRST_TOKEN_SECONDS = 0.05  # from the whole cache to the first token, the same for all
STAGE_SHARES = (0.03, 0.06, 0.125)
CACHEGEN_TARGETS = (0.5, 0.75, 1.0, 1.25)  # of the better single route; the best one counts
POLICY = Policy(stream_outstanding=8)
FIXED = replace(POLICY, refine=False)
AS_PRINTED = replace(PAPER_POLICY, stream_outstanding=8)
IDLE_WATTS = 5.0


def _schedules(costs, rule):
    """Name -> (schedule, policy) of all that the run-time scheduler can run."""
    ours = plan(costs, rule, STAGE_SHARES, (Potential.COLUMNS,))
    return {
        "stream": (all_stream(costs, rule), FIXED),
        "compute": (all_compute(costs, rule), FIXED),
        "hybrid": (static_hybrid(costs, rule), FIXED),
        "fixed": (ours, FIXED),
        "paper": (ours, AS_PRINTED),
        "ours": (ours, POLICY),
    }


def _run(costs, rule, schedules, condition):
    """Seconds per scheduler, and the energies in joules of those that have one."""
    seconds, busy = {}, {}
    for name, (schedule, policy) in schedules.items():
        link, device = condition.sides(costs)
        run = simulate(Scheduler(schedule, costs, policy), link, device)
        seconds[name] = run.makespan / TICKS_PER_SECOND
        busy[name] = (link.busy / TICKS_PER_SECOND, device.busy / TICKS_PER_SECOND)
    result = cake(costs, rule, *condition.sides(costs), POLICY.stream_outstanding)
    seconds["cake"] = result.makespan / TICKS_PER_SECOND
    single = min(costs.stream.sum(), costs.compute.sum())
    seconds["cachegen"] = min(
        cachegen(costs, condition.link, condition.load, target=int(share * single)).makespan
        for share in CACHEGEN_TARGETS
    ) / TICKS_PER_SECOND
    return {name: value + FIRST_TOKEN_SECONDS for name, value in seconds.items()}, busy


def _row(costs, rule, schedules, conditions):
    """Means over some conditions."""
    runs = [_run(costs, rule, schedules, condition) for condition in conditions]
    seconds = {
        name: float(np.mean([run[0][name] for run in runs])) for name in runs[0][0]
    }
    busy = {
        name: tuple(np.mean([run[1][name] for run in runs], axis=0).tolist())
        for name in runs[0][1]
    }
    return {"seconds": seconds, "busy": busy}


def measure(prompt, links, seeds=SEEDS):
    """One row per link, under a varying link and a varying load."""
    rows = {}
    for megabits in links:
        costs = prompt.costs(megabits)
        schedules = _schedules(costs, prompt.rule)
        conditions = [CONDITIONS["varying"](megabits / 8, seed) for seed in range(seeds)]
        rows[megabits] = _row(costs, prompt.rule, schedules, conditions)
        predicted = schedules["ours"][0].makespan(costs)
        rows[megabits]["plan_over_bound"] = predicted / lower_bound(costs, prompt.rule)
    return rows


def measure_conditions(prompt, megabits):
    """One row per condition, at one link."""
    costs = prompt.costs(megabits)
    schedules = _schedules(costs, prompt.rule)
    return {
        name: _row(costs, prompt.rule, schedules, [make(megabits / 8, 0)])
        for name, make in CONDITIONS.items()
    }


def _joules(row, name, powers):
    stream, compute = row["busy"][name]
    return powers.joules(stream_seconds=stream, compute_seconds=compute,
                         total_seconds=row["seconds"][name])


def figures(rows, crossover):
    """Numbers by key, for ``figures.json``."""
    found = {}
    for megabits, row in rows.items():
        name = "crossover" if megabits == crossover else f"{megabits}"
        seconds = row["seconds"]
        ttft = f"streaming.ttft.{name}"
        found[f"{ttft}.seconds"] = seconds["ours"]
        found[f"{ttft}.speedup_best_single"] = (
            min(seconds["stream"], seconds["compute"]) / seconds["ours"])
        for other in ("compute", "stream", "cake", "cachegen", "hybrid", "fixed", "paper"):
            found[f"{ttft}.speedup_{other}"] = seconds[other] / seconds["ours"]
        found[f"streaming.plan_over_bound.{name}"] = row["plan_over_bound"]
        energy = f"streaming.energy.{name}"
        for suffix, powers in (("", Powers()), ("_idle", Powers(idle=IDLE_WATTS))):
            ours = _joules(row, "ours", powers)
            found[f"{energy}.ratio{suffix}"] = _joules(row, "compute", powers) / ours
            found[f"{energy}.ratio_stream{suffix}"] = _joules(row, "stream", powers) / ours
    found["streaming.ttft.crossover.megabits"] = crossover
    return found


COLUMNS = ("stream", "compute", "hybrid", "cachegen", "cake", "fixed", "paper", "ours")


def _table(title, first, rows):
    table = Table(title=title, title_justify="left")
    table.add_column(first, no_wrap=True)
    for name in (*COLUMNS, "over single", "energy"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, row in rows.items():
        seconds = row["seconds"]
        single = min(seconds["stream"], seconds["compute"]) / seconds["ours"]
        energy = _joules(row, "compute", Powers()) / _joules(row, "ours", Powers())
        table.add_row(str(name), *(f"{seconds[column]:.2f}" for column in COLUMNS),
                      f"{single:.2f} x", f"{energy:.2f} x")
    return table


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m sim.streaming.ttft", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="traces per link (default: 2)")
    parser.add_argument("--output", type=Path, default=BUILD / "streaming", metavar="FOLDER")
    options = parser.parse_args(arguments)
    prompt = Prompt()
    crossover = prompt.crossover()
    rows = measure(prompt, sorted({*LINKS, crossover}), options.seeds)
    conditions = measure_conditions(prompt, crossover)
    console = Console(width=140)
    console.print(_table("Time to first token in seconds, link and load varying", "Mbit/s", rows))
    console.print(_table(f"The same at {crossover} Mbit/s", "condition", conditions))
    console.print("over single: the better of stream and compute over ours; energy: compute over "
                  "ours, 2.5 W radio and 25 W device")
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "ttft.json").write_text(json.dumps(
        {"figures": figures(rows, crossover), "links": rows, "conditions": conditions},
        indent=1, sort_keys=True) + "\n")
    ttft_plot(rows, crossover).savefig(options.output / "ttft.png", dpi=150)
    console.print(f"wrote ttft.json and ttft.png in {options.output}")


if __name__ == "__main__":
    main()
