"""What a session can ask of the attention unit, and what comes back. Arrays are NumPy's."""

from dataclasses import dataclass, field

import numpy as np

from golden.selection import Selection

__all__ = [
    "Append", "Context", "Counters", "Memory", "Query", "QueryResult", "Raw", "Reset", "Status",
    "Stopwatch", "Table", "Wait", "Weights",
]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Load one encoder matrix: int8 [code_bits, head_dim]."""

    weight_set: int
    is_key: bool
    matrix: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Table:
    """Enter physical page numbers into the block table from ``base`` on."""

    base: int
    pages: list


@dataclass(frozen=True, kw_only=True)
class Context:
    """Enter a context; fields of ``context_entry``, those left out are zero."""

    index: int
    entry: dict
    valid: bool = True


@dataclass(frozen=True, kw_only=True)
class Append:
    """Append rows: int8 [tokens, head_dim], exponents uint8 [tokens, blocks].

    ``codes``: uint8 bits [tokens, code_bits], or None to have the unit encode the keys.
    """

    context: int
    keys: np.ndarray
    key_exponents: np.ndarray
    values: np.ndarray
    value_exponents: np.ndarray
    codes: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query of all heads of a group: mantissas [group, head_dim], exponents [group].

    ``codes``: uint8 bits [group, code_bits], or None to have the unit encode the query.
    """

    context: int
    mantissas: np.ndarray
    exponents: np.ndarray
    selection: Selection
    visible: int = 0
    logits_only: bool = False
    want_output: bool = True
    want_state: bool = False
    codes: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Raw:
    """A command and its data as they are, to be refused: its result is a `Status`.

    ``fields``: of ``command``, the tag apart. ``beats``: values of ``data_beat``.
    """

    fields: dict
    beats: list


@dataclass(frozen=True)
class Wait:
    """Wait until every command before has ended."""


@dataclass(frozen=True, kw_only=True)
class Reset:
    """Reset the unit and the memory's bus (its contents stay).

    That is ``after`` cycles after ``beats`` more beats of results have come. Commands before it
    need not have ended: those that have not give no result.
    """

    after: int = 0
    beats: int = 0


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Set the memory model's controls by name, e.g. ``{"read_latency": 20}``."""

    controls: dict


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Wait for all commands, read the counters, and clear them unless told otherwise.

    Among them is ``now``: the cycle of the simulation in which ``cycles_idle`` was read, always
    equally late.
    """

    clear: bool = True


@dataclass(frozen=True)
class Stopwatch:
    """Wait for all commands, and read the clock on the wall: seconds since some start."""


@dataclass(kw_only=True)
class Status:
    """Outcome of a command; cycles count from the start of the simulation."""

    error: int
    start_cycle: int
    end_cycle: int
    length: int = 0


@dataclass(kw_only=True)
class QueryResult(Status):
    """Outcome of a query.

    ``outputs``: uint32 [group, head_dim] (float32 bits). ``states``: per head (m, ev, l, o) with o
    int64 [head_dim]. ``logits``: per head a list of (position, kind, weight, logit).
    ``output_cycle``: of the last OUTPUT beat.
    """

    full: int
    coarse: int
    summaries: int
    beats: int
    saturated: bool
    output_cycle: int = 0
    outputs: np.ndarray | None = None
    states: list = field(default_factory=list)
    logits: list = field(default_factory=list)
