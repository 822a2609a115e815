"""Plots of a demo's figures. Each function returns a matplotlib figure."""

import numpy as np
from matplotlib.figure import Figure

from sim.demo.summary import COSINE_TARGET

__all__ = ["bytes_read", "classes_by_distance", "cosines", "cycles", "errors", "mass"]

HASH, DENSE, LIMIT = "#2a6fbb", "#a3acb7", "#1c2530"
FULL, COARSE, SUMMARY, SKIPPED = "#17407c", "#6fa3e0", "#d9922e", "#d5dae1"
ERROR_LIMIT = 5e-5


def _axes(heads):
    """Axes with one line per head, the first on top."""
    figure = Figure(figsize=(8, 1.1 + 0.26 * len(heads)), layout="constrained")
    axes = figure.add_subplot()
    positions = np.arange(len(heads))
    axes.set_yticks(positions, [head.label for head in heads])
    axes.set_ylim(len(heads) - 0.4, -0.6)
    _plain(axes)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e3e7ec", linewidth=0.8)
    return figure, axes, positions


def _plain(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)


def _means(heads, name):
    return np.array([np.mean(getattr(head, name)) for head in heads])


def _legend(figure, axes, columns):
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=columns, frameon=False)


def cosines(heads):
    figure, axes, positions = _axes(heads)
    for position, head in zip(positions, heads, strict=True):
        values = head.cosines.ravel()
        axes.plot(values, np.full(len(values), position), "o", color=HASH, alpha=0.25, markersize=4,
                  markeredgewidth=0, label="a query" if position == 0 else None)
    axes.plot(_means(heads, "cosines"), positions, "|", color=LIMIT, markersize=13,
              markeredgewidth=2, label="mean of the head")
    axes.axvline(COSINE_TARGET, color=SUMMARY, linewidth=1.2, linestyle="--",
                 label=f"target of the mean, {COSINE_TARGET}")
    axes.set_xlabel("cosine with exact attention")
    _legend(figure, axes, 3)
    return figure


def cycles(heads):
    figure, axes, positions = _axes(heads)
    axes.barh(positions - 0.2, _means(heads, "hash_cycles"), 0.38, color=HASH, label="hash mode")
    axes.barh(positions + 0.2, _means(heads, "dense_cycles"), 0.38, color=DENSE, label="dense mode")
    for offset, name in ((-0.2, "limit"), (0.2, "dense_limit")):
        axes.plot(_means(heads, name), positions + offset, "|", color=LIMIT, markersize=6,
                  markeredgewidth=1.6, label="limit" if name == "limit" else None)
    axes.set_xlabel("cycles of a query alone")
    _legend(figure, axes, 3)
    return figure


def bytes_read(heads, *, full_bytes, coarse_bytes):
    """Bytes of a query by what they were read for.

    ``full_bytes`` and ``coarse_bytes`` are those of one row's beats.
    """
    figure, axes, positions = _axes(heads)
    parts = (("full", 2 * full_bytes, FULL, "full rows"),
             ("coarse", 2 * coarse_bytes, COARSE, "coarse rows"),
             ("summaries", 2 * full_bytes, SUMMARY, "page summaries"))
    start = np.zeros(len(heads))
    for name, row_bytes, colour, label in parts:
        length = _means(heads, name) * row_bytes
        axes.barh(positions, length, 0.6, left=start, color=colour, label=label)
        start = start + length
    rest = _means(heads, "hash_bytes") - start
    if (rest > 0).any():
        axes.barh(positions, rest, 0.6, left=start, color=LIMIT, label="code lines")
    axes.plot(_means(heads, "dense_bytes"), positions, "|", color=DENSE, markersize=12,
              markeredgewidth=3, label="dense mode")
    axes.set_xlim(left=0)
    axes.set_xlabel("bytes read by a query")
    _legend(figure, axes, 5)
    return figure


def mass(heads):
    figure, axes, positions = _axes(heads)
    shares = np.stack([head.mass.mean(axis=(0, 1)) for head in heads])
    start = np.zeros(len(heads))
    names = (("full", 2, FULL), ("coarse", 1, COARSE), ("skipped", 0, SKIPPED))
    for name, kind, colour in names:
        tokens = np.mean([np.mean(getattr(head, name) / head.visible) for head in heads])
        axes.barh(positions, 100 * shares[:, kind], 0.6, left=start, color=colour,
                  label=f"{name} ({tokens:.0%} of the tokens)")
        start = start + 100 * shares[:, kind]
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of exact attention, %")
    _legend(figure, axes, 3)
    return figure


def errors(heads):
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    values = np.concatenate([head.errors.ravel() for head in heads])
    # An error of nothing has no place on a logarithmic axis.
    values = np.maximum(values, 1e-12)
    low = np.floor(np.log10(values.min()))
    axes.hist(values, np.logspace(low, np.log10(ERROR_LIMIT) + 0.25, 49), color=HASH)
    axes.axvline(ERROR_LIMIT, color=SUMMARY, linewidth=1.2, linestyle="--",
                 label=f"allowed, {ERROR_LIMIT:.0e}")
    axes.set_xscale("log")
    axes.set_xlabel("largest error of an output, relative to the largest value read")
    axes.set_ylabel("outputs")
    _plain(axes)
    _legend(figure, axes, 1)
    return figure


def classes_by_distance(head):
    """Tokens of the head's first query by code distance and class."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    bins = np.arange(head.distances.shape[1])
    start = np.zeros(len(bins))
    for name, kind, colour in (("full", 2, FULL), ("coarse", 1, COARSE), ("skipped", 0, SKIPPED)):
        counts = head.distances[kind]
        axes.bar(bins, counts, 0.9, bottom=start, color=colour, label=f"{name} ({counts.sum()})")
        start = start + counts
    used = np.flatnonzero(head.distances.sum(axis=0))
    axes.set_xlim(used[0] - 1, used[-1] + 1)
    axes.set_xlabel(f"distance of a key's code from the query's ({head.label})")
    axes.set_ylabel("tokens")
    _plain(axes)
    _legend(figure, axes, 3)
    return figure
