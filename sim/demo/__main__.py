"""Command line of the demo: ``python -m sim.demo --help``."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from hw.presets import PRESETS
from sim.build import SimulationError
from sim.demo.page import write_page
from sim.demo.run import simulate
from sim.demo.summary import Summary, to_table
from sim.demo.timeline import write_timeline
from sim.demo.work import Settings, fit_config, plan, prepare
from sim.tools import BUILD, ToolError
from sim.trace import SHIPPED_TRACE, load_trace

WORKERS = 2
SINK, RECENT, SEED = 4, 0, 0
TABLE_COLUMNS = 120


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m sim.demo",
        description="Run queries, keys and values of a model through the attention unit in "
                    "simulation, in hash mode and in dense mode, and compare every result with "
                    "the golden model.",
        epilog="Exit status: 0, 1 if RTL and golden model disagree or the shipped trace misses "
               "its targets, 2 for input that is refused.")
    parser.add_argument("--trace", type=Path, metavar="FILE",
                        help=".npz or .safetensors with q [queries, query_heads, head_dim] and k, "
                             "v [tokens, kv_heads, head_dim]; see sim/trace.py (default: the "
                             "shipped capture of all-MiniLM-L6-v2)")
    parser.add_argument("--preset", choices=PRESETS, default="tiny",
                        help="configuration of the unit; head_dim, group and capacity follow the "
                             "trace (default: tiny)")
    parser.add_argument("--full", type=_count, metavar="TOKENS",
                        help="tokens read in full (default: 5 of 64 visible, 40 of 512)")
    parser.add_argument("--coarse", type=_count, metavar="TOKENS",
                        help="tokens read by their upper plane (default: 13 of 64, 104 of 512)")
    parser.add_argument("--sink", type=_count, default=SINK, metavar="TOKENS",
                        help="first tokens, always full (default: 4)")
    parser.add_argument("--recent", type=_count, default=RECENT, metavar="TOKENS",
                        help="last tokens, always full (default: 0)")
    parser.add_argument("--seed", type=_count, default=SEED,
                        help="of the random rotation that makes the codes (default: 0)")
    parser.add_argument("--heads", type=_positive, metavar="N",
                        help="KV heads to run, evenly spaced (default: all)")
    parser.add_argument("--queries", type=_positive, metavar="N",
                        help="queries of each head to run, evenly spaced (default: all)")
    parser.add_argument("--output", type=Path, default=BUILD / "demo", metavar="FOLDER",
                        help="where the report goes (default: build/demo)")
    return parser.parse_args(arguments)


def _count(text):
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, not {text!r}")
    return int(text)


def _positive(text):
    if _count(text) == 0:
        raise argparse.ArgumentTypeError("must be a number of at least 1, not '0'")
    return int(text)


def jobs_of(options, settings):
    """The jobs that the options ask for."""
    trace = load_trace(options.trace or SHIPPED_TRACE)
    config = fit_config(PRESETS[options.preset].attention, trace)
    heads = prepare(trace, config, heads=options.heads, queries=options.queries)
    return plan(heads, config, settings, sessions=WORKERS)


def is_judged(options):
    """Whether the run is the one that the targets are for: whole, and with nothing changed."""
    return all(getattr(options, name) is None
               for name in ("trace", "full", "coarse", "heads", "queries")) and (
                   options.preset, options.sink, options.recent,
                   options.seed) == ("tiny", SINK, RECENT, SEED)


def write_results(options, settings, jobs, outcome, console):
    """Write and print what was measured, and return the targets missed."""
    source = str(options.trace or "all-MiniLM-L6-v2")
    summary = Summary(outcome.figures)
    options.output.mkdir(parents=True, exist_ok=True)
    page = options.output / "report.html"
    write_page(page, summary, config=jobs[0].session.config, settings=settings, source=source,
               mismatches=outcome.mismatches)
    write_timeline(options.output / "timeline.json", jobs[0], outcome.first_results)
    (options.output / "figures.json").write_text(
        json.dumps(summary.figures(), indent=2) + "\n", encoding="utf-8")
    # A terminal that is too narrow wraps lines, where the table would drop digits.
    console.width = max(console.width, TABLE_COLUMNS)
    console.print(to_table(
        summary, f"{source}: means of {len(outcome.figures[0].visible)} queries per head"))
    console.print(
        f"cosine {summary.cosine:.4f}, {summary.byte_share:.1%} of dense bytes, "
        f"{summary.speedup:.2f}x fewer cycles, in a row {summary.burst_speedup:.2f}x")
    if not outcome.mismatches:
        console.print(f"RTL and golden model agree in every bit: {summary.compared:,} values")
    console.print(f"report: {page}", soft_wrap=True)
    return summary.misses() if is_judged(options) else []


def main(arguments=None):
    options = parse(arguments)
    settings = Settings(full=options.full, coarse=options.coarse, sink=options.sink,
                        recent=options.recent, seed=options.seed)
    try:
        jobs = jobs_of(options, settings)
    except (OSError, TypeError, ValueError) as error:
        return fail(error, 2)
    console = Console(highlight=False)
    try:
        outcome = simulate(jobs, console, workers=WORKERS)
    except (SimulationError, ToolError) as error:
        return fail(error, 1)
    problems = [f"RTL and golden model disagree: {line}" for line in outcome.mismatches]
    if outcome.figures:
        problems += write_results(options, settings, jobs, outcome, console)
    for line in problems:
        fail(line, 1)
    return int(bool(problems))


def fail(reason, status):
    print(f"sim.demo: {reason}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
