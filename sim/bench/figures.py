"""The file of measured figures, and the page written from it."""

import json

from hw.config import WIRE_FORMATS
from sim.tools import BUILD, ROOT

__all__ = ["ATTENTION", "FIGURES", "STREAMING", "merge_figures", "read_figures", "to_page",
           "to_text", "write_page"]

# Kept with the sources, so that a run of a part writes the page with what others measured before.
KEPT = ROOT / "docs" / "figures.json"
FIGURES = BUILD / "bench" / "figures.json"
PAGE = ROOT / "docs" / "performance.md"

# What a figure is measured against: key, what it is, what is asked of it (a text).
ATTENTION = (
    ("attention.top32_n1024.cycles",
     "Latency, 1,024 tokens, d = 64, 64-bit codes, nearest 32 in full, 16 lanes, 64 B/cycle, "
     "memory latency 20", "at most 240, aim 180 (CAMformer: 721)"),
    ("attention.top32_n1024.cycles_ready_made_code", "The same, the query's code ready-made", ""),
    ("attention.top32_n1024.limit", "Its limit: code phase + payload", ""),
    ("attention.n8192.hash.cycles",
     "Latency, 8,192 tokens, d = 128, 64-bit codes, 32 lanes, 64 B/cycle, 128 full + 512 coarse",
     "at most 1.1 x limit + 64"),
    ("attention.n8192.hash.limit", "Its limit", ""),
    ("attention.n8192.dense.cycles", "The same tokens, all in full", "at most 1.05 x limit"),
    ("attention.n8192.dense.limit", "Its limit", ""),
    ("attention.n8192.speedup", "Hash mode over dense mode", "at least 12"),
    ("attention.pipelined.cycles", "Cycles per query, back to back on two contexts",
     "at most 1.1 x limit"),
    ("attention.pipelined.limit", "Its limit: max(code phase, payload)", ""),
    ("attention.match.codes_per_cycle", "Codes matched per cycle, 16 lanes", "16, no bubble"),
    ("attention.match.no_bubble_at_any_length", "... at lengths that end within a line too", "yes"),
    ("attention.error.max", "Largest error against float64, of max |v|, all shapes of input",
     "at most 5e-5"),
    ("attention.demo.cosine", "Demo: mean cosine with exact attention", "at least 0.993"),
    ("attention.demo.byte_share", "Demo: bytes read, of dense", "at most 0.25"),
    ("sim.cocotb_over_bare.ratio", "A query under cocotb, against the model stepped from C++",
     "at most 2"),
)

BUSES = (64, 128, 256, 512)
STREAMING = (
    *((f"streaming.copy.{bits}.use",
       f"Copy of 64 KiB, {bits}-bit bus, memory latency 100: share of cycles with a beat",
       "at least 0.99") for bits in BUSES),
    *((f"streaming.copy64b.{bits}.use", f"Copies of 64 bytes back to back, {bits}-bit bus",
       "at least 0.80") for bits in BUSES),
    ("streaming.launch.resident.cycles", "Command to first address on the bus", "at most 8"),
    ("streaming.launch.fetched.cycles",
     "The same, its descriptor fetched, memory latency 100", "at most 208"),
    *((f"streaming.format.{name.lower()}.use",
       f"{name} frames back to back, 64-bit link and memory: share of the busier one's cycles with "
       "a beat", "within 0.01 of copies") for name in WIRE_FORMATS),
    ("streaming.huffman.beats_per_cycle",
     "Stored 64-bit beats per cycle, 5-bit alphabet, 8 sub-streams", "at least 1"),
    ("streaming.model.cycle_error",
     "Largest error of the predicted makespan against the hardware, decisions equal",
     "at most 0.02"),
    ("streaming.scheduler.event_cycles", "Most cycles that an event took the route scheduler there",
     ""),
    ("streaming.greedy_over_optimum.mean",
     "Planned schedule over the true optimum, 200 small cases, mean", "at most 1.05"),
    ("streaming.greedy_over_optimum.worst", "... worst", "at most 1.20"),
)


def merge_figures(figures):
    """Add figures to both files; those with other keys stay."""
    known = read_figures()
    known.update(figures)
    text = json.dumps(dict(sorted(known.items())), indent=2) + "\n"
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    for path in (KEPT, FIGURES):
        path.write_text(text, encoding="utf-8")
    return known


def read_figures():
    """All figures, as they were measured last."""
    return json.loads(KEPT.read_text(encoding="utf-8"))


def to_text(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return f"{int(value):,}"
    return f"{value:.3g}" if abs(value) < 0.01 else f"{value:,.4g}"


def write_page(figures):
    """Write docs/performance.md from the figures measured."""
    PAGE.write_text(to_page(figures), encoding="utf-8")


def to_page(figures):
    """The text of docs/performance.md."""
    lines = [
        "# Performance", "",
        "Written by `make bench` and `make synth` from `docs/figures.json`; do not edit. "
        "Cycles are exact and the same on every machine.", "",
    ]
    lines += [*_asked("Attention unit in simulation", ATTENTION, figures), *_errors(figures),
              *_asked("Streaming engine", STREAMING, figures), *_links(figures), *_dram(figures),
              *_synthesis(figures)]
    return "\n".join(lines).rstrip() + "\n"


def _errors(figures):
    prefix = "attention.error."
    rows = {key[len(prefix):]: value for key, value in figures.items()
            if key.startswith(prefix) and key != "attention.error.max"}
    if not rows:
        return []
    return ["## Error by shape of input (`golden/shapes.py`)", "", "| input | error / max abs v |",
            "|---|---|", *(f"| {name.replace('_', ' ')} | {value:.1e} |"
                           for name, value in rows.items()), ""]


def _asked(title, rows, figures):
    """A table of figures beside what is asked of them."""
    rows = [f"| {text} | {asked} | {to_text(figures[key])} | `{key}` |"
            for key, text, asked in rows if key in figures]
    if not rows:
        return []
    return [f"## {title}", "", "| what | asked | measured | key |", "|---|---|---|---|", *rows, ""]


def _links(figures):
    """What the schedules reach on each link; explained in docs/scheduling.md."""
    links = {}
    for key, value in figures.items():
        parts = key.split(".")
        if parts[0] == "streaming" and parts[1] in ("ttft", "energy"):
            column = parts[3] if parts[1] == "ttft" else f"{parts[1]} {parts[3]}"
            links.setdefault(parts[2], {})[column.replace("_", " ")] = value
    if not links:
        return []
    columns = sorted({column for row in links.values() for column in row})
    return [
        "Time to first token by link (Mbit/s): `streaming.ttft.<link>.<column>`, and energy "
        "`streaming.energy.<link>.<column>`.", "",
        "| link | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|",
        *("| " + " | ".join([link, *(to_text(row[column]) if column in row else ""
                                     for column in columns)]) + " |"
          for link, row in sorted(links.items(), key=lambda item: (len(item[0]), item[0]))), ""]


def _dram(figures):
    """What the golden DRAM scheduler reaches: a row per kind of traffic, a column per part."""
    prefix, rows, parts = "memory.model.", {}, []
    for key, value in figures.items():
        if key.startswith(prefix):
            part, traffic = key.removeprefix(prefix).split(".", 1)
            rows.setdefault(traffic, {})[part] = value
            parts += [part] if part not in parts else []
    if not rows:
        return []
    return [
        "## Golden DRAM scheduler (docs/memory_dram.md)", "",
        "Share of the data bus's time with data, of sequential traffic as a share of the "
        "refresh-limited peak: `memory.model.<part>.<traffic>`.", "",
        "| traffic | " + " | ".join(parts) + " |", "|---" * (len(parts) + 1) + "|",
        *(f"| `{traffic}` | " + " | ".join(
            to_text(row[part]) if part in row else "" for part in parts) + " |"
          for traffic, row in sorted(rows.items())), ""]


def _synthesis(figures):
    """One table per kind of target: rows are designs, columns what was measured."""
    designs = {}
    for key, value in figures.items():
        if key.startswith("synth."):
            design, column = key.removeprefix("synth.").rsplit(".", 1)
            designs.setdefault(design, {})[column] = value
    if not designs:
        return []
    lines = []
    targets = {
        "FPGA: Lattice ECP5-85F, after place and route": ("lut", "ff", "dsp", "bram", "fmax_mhz"),
        "ASIC: OSU 0.18 um cells, after mapping": ("area_um2", "path_ns"),
    }
    for title, columns in targets.items():
        rows = {design: values for design, values in designs.items()
                if any(column in values for column in columns)}
        if not rows:
            continue
        lines += [f"## {title}", "", "| design | " + " | ".join(columns) + " |",
                  "|---" * (len(columns) + 1) + "|"]
        for design, values in rows.items():
            cells = [to_text(values[column]) if column in values else "" for column in columns]
            lines.append(f"| `{design}` | " + " | ".join(cells) + " |")
        lines.append("")
    return lines
