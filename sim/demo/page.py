"""The HTML page of a demo."""

from sim.demo import plots
from sim.demo.summary import HEADER
from sim.demo.work import BURST_QUERIES, COARSE_SHARE, FULL_SHARE, MEMORY_LATENCY
from sim.report import Report

__all__ = ["write_page"]


def write_page(path, summary, *, config, settings, source, mismatches=()):
    """Write the report of a demo.

    Parameters
    ----------
    path : Path
    summary : Summary
    config : AttentionConfig
    settings : Settings
    source : str
        Where the trace is from.
    mismatches : list of str
        Heads whose results differ between RTL and golden model, and how.
    """
    heads = summary.heads
    report = Report(
        "Hash attention on real data",
        lead=f"{source}: {len(heads)} KV heads of {int(heads[0].visible.max())} tokens, "
             f"{len(heads[0].visible)} queries each, through the attention unit in cycle-accurate "
             f"simulation.")
    for line in mismatches:
        report.text(f"RTL and golden model disagree: {line}")
    report.numbers([
        ("cosine with exact attention", f"{summary.cosine:.4f}", "mean over heads and queries"),
        ("bytes read", f"{summary.byte_share:.1%}", "of dense mode"),
        ("cycles of a query", f"{summary.speedup:.2f}x fewer",
         f"than dense mode; {summary.burst_speedup:.2f}x back to back"),
        ("largest error", f"{summary.error:.1e}", "against float64 over the same rows"),
        ("equal in RTL and golden model", f"{summary.compared:,}",
         "values" if not mismatches else f"values; {len(mismatches)} heads differ"),
    ])
    _describe(report, config, settings)
    report.heading("Heads")
    report.table(HEADER, summary.rows(), total=summary.total())
    report.text(
        "Means per query. Cycles are from the command to the last beat of the output, of a query "
        "alone; the limit is what the match lanes and the memory port allow at best. In a row: "
        f"cycles per query when {BURST_QUERIES} hash queries are sent back to back. Bytes are bus "
        "beats times the width of the bus, waste included. Error: against float64 softmax over "
        "exactly the rows read, relative to the largest value among them. Cosine: with float64 "
        "attention over all unquantised keys and values.")
    _plot(report, heads, config)
    report.write(path)


def _describe(report, config, settings):
    full, coarse = (
        f"{share} of 64 visible tokens" if count is None else f"{count} tokens"
        for share, count in ((FULL_SHARE, settings.full), (COARSE_SHARE, settings.coarse)))
    report.text(
        f"The unit: head_dim {config.head_dim}, {config.code_bits}-bit codes, {config.lanes} "
        f"matched per cycle, query heads per KV head: {config.group}, memory of "
        f"{config.memory_bytes} bytes per cycle with {MEMORY_LATENCY} cycles latency. A query "
        f"reads {full} in full and {coarse} by their upper nibbles, nearest codes first, the first "
        f"{settings.sink} and the last {settings.recent} always in full; the rest counts through "
        f"the mean row of its page. Encoders: random rotation, seed {settings.seed}.")


def _plot(report, heads, config):
    report.heading("Likeness to exact attention")
    report.plot(plots.cosines(heads), caption="Cosine of each query's output with exact attention.")
    report.plot(plots.mass(heads), caption=(
        "Where exact attention goes: the share of it that the tokens of each class have. What is "
        "skipped is read as page means."))
    report.plot(plots.classes_by_distance(heads[0]), caption=(
        "How one query chose: tokens by the distance of their codes. Ties at a threshold go to "
        "the most recent tokens."))
    report.plot(plots.errors(heads), caption=(
        "Arithmetic alone: outputs of the hardware against float64 over the same stored rows."))
    report.heading("Cycles and bytes")
    report.plot(plots.cycles(heads), caption="Cycles of a query, and their limit in each mode.")
    report.plot(
        plots.bytes_read(heads, full_bytes=config.full_beats * config.memory_bytes,
                         coarse_bytes=config.coarse_beats * config.memory_bytes),
        caption="Bytes that a query reads from memory.")
