"""From a trace to sessions: quantised heads, and the commands that run them on the unit."""

from dataclasses import dataclass, field, replace
from math import ceil, e, log2, sqrt

import numpy as np

from golden.mxint import quantise, quantise_query
from golden.selection import Select, Selection
from hw.config import MX_BLOCK, PAGE_TOKENS, AttentionConfig
from sim.attention import Append, Memory, Query, Session, Wait, Weights
from sim.attention.layout import place
from sim.attention.random_work import weights
from sim.trace import Trace

__all__ = ["BURST_QUERIES", "COARSE_SHARE", "FULL_SHARE", "MEMORY_LATENCY", "Head", "Job",
           "Settings", "fit_config", "plan", "prepare"]

MEMORY_LATENCY = 20
"""Cycles from a read address to its first beat."""

BURST_QUERIES = 8
"""Queries of a head that are sent back to back."""

FULL_SHARE, COARSE_SHARE = 5, 13
"""Tokens of each 64 visible that a query reads by default: 40 and 104 of 512."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How hash queries select.

    Parameters
    ----------
    full, coarse : int or None
        Tokens read in full and by their upper plane, at most those visible. ``None``: 5 and 13 in
        64 of the visible tokens, which with the summaries of all pages read a quarter of the bytes.
    sink, recent : int
        Tokens at the start and at the end that are always full.
    seed : int
        Of the random rotation that the encoders hold.
    """

    full: int | None = None
    coarse: int | None = None
    sink: int = 4
    recent: int = 0
    seed: int = 0

    def selection(self, visible):
        """The selection of a query that sees ``visible`` tokens."""
        full = visible * FULL_SHARE // 64 if self.full is None else min(self.full, visible)
        coarse = visible * COARSE_SHARE // 64 if self.coarse is None else self.coarse
        return Selection(
            select=Select.BUDGET, full=full, coarse=min(coarse, visible - full),
            sink=min(self.sink, visible), recent=min(self.recent, visible), summaries=True)


DENSE = Selection(select=Select.DENSE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """A KV head as the hardware holds it, with the queries that read it.

    Members
    -------
    trace : Trace
        Of this head alone, unquantised.
    keys, values : (int8 [tokens, d], uint8 [tokens, blocks])
    mantissas : integer array [queries, group, d]
    exponents : uint8 [queries, group]
    """

    trace: Trace
    keys: tuple
    values: tuple
    mantissas: np.ndarray
    exponents: np.ndarray

    @property
    def label(self):
        return self.trace.labels[0]


def prepare(trace, config, *, heads=None, queries=None):
    """The heads of a trace, or some of them, with all their queries, or some of those.

    Parameters
    ----------
    trace : Trace
    config : AttentionConfig
    heads, queries : int or None
        Keep as many, evenly spaced.

    Returns
    -------
    list of Head
    """
    kept = _evenly(trace.query_count, queries)
    trace = replace(trace, q=trace.q[kept], visible=trace.visible[kept])
    return [_prepare_head(trace.kv_head(int(index)), config)
            for index in _evenly(trace.kv_heads, heads)]


def _prepare_head(trace, config):
    # The hardware's softmax is in base 2.
    folded = trace.q * (log2(e) / sqrt(config.head_dim))
    mantissas, exponents = quantise_query(folded, config.query_bits)
    return Head(
        trace=trace, keys=quantise(trace.k[:, 0], config.exponent_block),
        values=quantise(trace.v[:, 0], config.exponent_block),
        mantissas=mantissas, exponents=exponents)


def _evenly(count, limit):
    """Indices of at most ``limit`` of ``count`` things, evenly spaced."""
    limit = count if limit is None else min(limit, count)
    return (2 * np.arange(limit) + 1) * count // (2 * limit)


def fit_config(preset: AttentionConfig, trace: Trace):
    """The preset with the head_dim and the group of a trace, and room for its tokens.

    Raises
    ------
    ValueError
        The hardware has no such head_dim or group, or cannot hold as many tokens.
    """
    blocked = preset.exponent_block == MX_BLOCK
    return replace(
        preset, head_dim=trace.head_dim, group=trace.group,
        exponent_block=MX_BLOCK if blocked else trace.head_dim,
        # Of a wider memory a coarse read would waste a part of its beat.
        memory_bytes=min(preset.memory_bytes, trace.head_dim // 2),
        max_tokens=max(preset.max_tokens, ceil(trace.token_count / 256) * 256),
        table_pages=max(preset.table_pages, ceil(trace.token_count / PAGE_TOKENS)),
        # Derived from the fields above.
        resident_tokens=None, distance_shift=None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A session and what it is made of.

    Members
    -------
    heads : list of Head
        Head i is context i.
    session : Session
    hashed, burst, dense : list of list of int
        Per head the indices of its operations: queries in hash mode one at a time, in hash mode
        back to back, and in dense mode one at a time.
    """

    heads: list
    session: Session
    hashed: list = field(default_factory=list)
    burst: list = field(default_factory=list)
    dense: list = field(default_factory=list)

    @property
    def encoders(self):
        """Matrices that the session loads, by ``is_key``."""
        return {operation.is_key: operation.matrix for operation in self.session.operations
                if isinstance(operation, Weights)}

    @property
    def timeout_cycles(self):
        """Ten times the cycles that the session should take at most."""
        config = self.session.config
        row = 2 * config.full_beats
        cycles = sum(
            len(operation.keys) * (row + config.code_bits) if isinstance(operation, Append)
            else operation.visible * row + 1000
            for operation in self.session.operations if isinstance(operation, (Append, Query)))
        return 10 * cycles + 100_000

    def commands(self, index):
        """Indices of all operations of a head that give results."""
        return [at for at, operation in enumerate(self.session.operations)
                if isinstance(operation, (Append, Query)) and operation.context == index]


def plan(heads, config, settings, *, sessions=2):
    """Spread heads over sessions, of which there are at least ``sessions`` if the heads allow."""
    tokens = heads[0].trace.token_count
    per_session = min(_room(config, tokens), ceil(len(heads) / sessions))
    size = place(config, [tokens] * per_session).memory_size
    return [_job(heads[first:first + per_session], config, settings, size)
            for first in range(0, len(heads), per_session)]


def _room(config, tokens):
    """Contexts of ``tokens`` that the unit holds at once."""
    pages = ceil(tokens / PAGE_TOKENS)
    room = min(config.contexts, config.table_pages // pages)
    if config.code_source == "resident":
        line = max(config.lanes, PAGE_TOKENS)
        room = min(room, config.resident_tokens // (ceil(tokens / line) * line))
    return room


def _job(heads, config, settings, memory_size):
    session = Session(config, memory_size=memory_size)
    job = Job(heads=heads, session=session)
    session.add(Memory(controls={"read_latency": MEMORY_LATENCY}),
                *place(config, [head.trace.token_count for head in heads]).operations,
                *weights(config, seed=settings.seed))
    for context, head in enumerate(heads):
        session.add(Append(context=context, keys=head.keys[0], key_exponents=head.keys[1],
                           values=head.values[0], value_exponents=head.values[1]))
    session.add(Wait())
    for context, head in enumerate(heads):
        queries = range(head.trace.query_count)
        selections = [settings.selection(int(visible)) for visible in head.trace.visible]
        job.hashed.append([_query(session, context, head, query, selections[query], Wait())
                           for query in queries])
        job.burst.append([_query(session, context, head, query, selections[query])
                          for query in queries[:BURST_QUERIES]])
        session.add(Wait())
        job.dense.append([_query(session, context, head, query, DENSE, Wait())
                          for query in queries])
    return job


def _query(session, context, head, query, selection, *behind):
    index = session.add(Query(
        context=context, mantissas=head.mantissas[query], exponents=head.exponents[query],
        selection=selection, visible=int(head.trace.visible[query])))
    session.add(*behind)
    return index
