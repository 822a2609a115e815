"""A demo's figures as rows of text, as totals, and as the entries of ``figures.json``."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

__all__ = ["BYTE_SHARE_TARGET", "COSINE_TARGET", "HEADER", "Summary", "to_table"]

COSINE_TARGET = 0.993
BYTE_SHARE_TARGET = 0.25

HEADER = ("head", "tokens\nfull", "tokens\ncoarse", "tokens\nskipped", "cycles\nhash",
          "cycles\ndense", "cycles\nlimit", "cycles\nin a row", "bytes\nhash", "bytes\ndense",
          "largest\nerror", "cosine", "equal to\ngolden")


@dataclass(frozen=True, eq=False)
class Summary:
    """Means over all heads of a demo.

    Parameters
    ----------
    heads : list of Figures
    """

    heads: list

    def _mean(self, name):
        return float(np.mean([np.mean(getattr(head, name)) for head in self.heads]))

    @cached_property
    def cosine(self):
        return self._mean("cosines")

    @cached_property
    def byte_share(self):
        return self._mean("hash_bytes") / self._mean("dense_bytes")

    @cached_property
    def speedup(self):
        """Of a query alone: cycles of dense mode over those of hash mode."""
        return self._mean("dense_cycles") / self._mean("hash_cycles")

    @cached_property
    def burst_speedup(self):
        """Of queries back to back, against the fewest cycles that dense mode can take."""
        return self._mean("dense_limit") / self._mean("interval")

    @cached_property
    def error(self):
        return max(float(head.errors.max()) for head in self.heads)

    @cached_property
    def compared(self):
        return sum(head.compared for head in self.heads)

    def rows(self):
        """The table's cells, one row per head under ``HEADER``."""
        return [self._row(head.label, lambda name, head=head: float(np.mean(getattr(head, name))),
                          float(head.errors.max()), head.compared) for head in self.heads]

    def total(self):
        """One more row: means, the largest error, and the number of values compared."""
        return self._row("all heads", self._mean, self.error, self.compared)

    @staticmethod
    def _row(label, mean, error, compared):
        return [
            label, *(f"{mean(name):.1f}" for name in ("full", "coarse", "skipped")),
            *(f"{mean(name):,.0f}"
              for name in ("hash_cycles", "dense_cycles", "limit", "interval",
                           "hash_bytes", "dense_bytes")),
            f"{error:.1e}", f"{mean('cosines'):.4f}", f"{compared:,}"]

    def misses(self):
        """What a shipped demo must reach and does not, one line each."""
        lines = []
        if not self.cosine >= COSINE_TARGET:
            lines.append(f"mean cosine must be at least {COSINE_TARGET}, not {self.cosine:.4f}")
        if not self.byte_share <= BYTE_SHARE_TARGET:
            lines.append(f"bytes read must be at most {BYTE_SHARE_TARGET:.0%} of dense, "
                         f"not {self.byte_share:.1%}")
        return lines

    def figures(self):
        """Numbers by key, for ``figures.json``."""
        return {f"attention.demo.{name}": value for name, value in {
            "cosine": self.cosine,
            "cosine.worst_head": min(float(head.cosines.mean()) for head in self.heads),
            "cosine.dense": self._mean("dense_cosines"),
            "byte_share": self.byte_share,
            "bytes.hash": self._mean("hash_bytes"),
            "bytes.dense": self._mean("dense_bytes"),
            "cycles.hash": self._mean("hash_cycles"),
            "cycles.dense": self._mean("dense_cycles"),
            "cycles.limit": self._mean("limit"),
            "cycles.dense_limit": self._mean("dense_limit"),
            "cycles.interval": self._mean("interval"),
            "speedup": self.speedup,
            "burst_speedup": self.burst_speedup,
            "error.max": self.error,
            "values_compared": self.compared,
            "heads": len(self.heads),
            "queries": len(self.heads[0].visible),
        }.items()}


def to_table(summary, title):
    """The summary as a table for the terminal."""
    table = Table(title=title, title_justify="left", show_footer=True, box=SIMPLE_HEAD,
                  pad_edge=False, collapse_padding=True)
    for name, footer in zip(HEADER, summary.total(), strict=True):
        left = name == HEADER[0]
        table.add_column(name, footer=footer, justify="left" if left else "right", no_wrap=True)
    for cells in summary.rows():
        table.add_row(*cells)
    return table
