"""What a demo measures of each head: work, cycles, bytes, error and likeness to exact attention."""

from dataclasses import dataclass

import numpy as np

from golden import hashing, pipeline
from golden.cycles import Work, predict
from golden.mxint import dequantise, dequantise_query
from golden.pipeline import Kind
from golden.reference import attention, weighted_attention
from golden.selection import COARSE, FULL, SKIPPED, Select
from golden.summary import page_summaries
from hw.config import PAGE_TOKENS
from sim.attention.twin import compare
from sim.demo.work import MEMORY_LATENCY

__all__ = ["Figures", "Mismatch", "cosine", "measure"]


class Mismatch(AssertionError):
    """The unit and its golden model disagree."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Figures:
    """Figures of one KV head. Arrays have one entry per query.

    Members
    -------
    label : str
    visible, full, coarse, summaries : int arrays [queries]
        Tokens seen; items read of each kind in hash mode.
    hash_cycles, dense_cycles : int arrays [queries]
        From the command to the last beat of the output, of a query alone.
    limit, dense_limit : int arrays [queries]
        What no design with these lanes and this memory can beat.
    interval : float
        Cycles from one query to the next, in hash mode back to back.
    hash_bytes, dense_bytes : int arrays [queries]
        Read: bus beats times their width.
    errors : float arrays [queries, group]
        Largest difference from float64 over the rows read, relative to the largest value read.
    cosines, dense_cosines : float arrays [queries, group]
        With exact attention over the unquantised trace.
    mass : float array [queries, group, 3]
        Share of the exact attention that skipped, coarse and full tokens have.
    distances : int array [3, bins]
        Tokens of the first query by class and code distance.
    compared : int
        Values that were equal in RTL and golden model.
    """

    label: str
    visible: np.ndarray
    full: np.ndarray
    coarse: np.ndarray
    summaries: np.ndarray
    hash_cycles: np.ndarray
    dense_cycles: np.ndarray
    limit: np.ndarray
    dense_limit: np.ndarray
    interval: float
    hash_bytes: np.ndarray
    dense_bytes: np.ndarray
    errors: np.ndarray
    cosines: np.ndarray
    dense_cosines: np.ndarray
    mass: np.ndarray
    distances: np.ndarray
    compared: int

    @property
    def skipped(self):
        """Tokens read only through the summaries of their pages, if at all."""
        return self.visible - self.full - self.coarse


def cosine(a, b):
    """Cosine of the angle between vectors along the last axis; 1 between two zero vectors."""
    scale = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    dots = (a * b).sum(axis=-1)
    both_zero = ~a.any(axis=-1) & ~b.any(axis=-1)
    return np.where(scale > 0, dots / np.where(scale > 0, scale, 1.0), both_zero.astype(float))


def measure(job, index, results, twins):
    """Compare head ``index`` of a job with its golden twin, and measure it.

    Parameters
    ----------
    job : Job
    index : int
    results, twins : list
        Of all operations, from the simulation and from the golden model.

    Returns
    -------
    Figures

    Raises
    ------
    Mismatch
        They disagree, or a command failed in both.
    """
    head, config = job.heads[index], job.session.config
    compared = _compare(job, index, results, twins)
    hashed = [results[at] for at in job.hashed[index]]
    dense = [results[at] for at in job.dense[index]]
    chosen = [twins[at] for at in job.hashed[index]]
    exact, lse = attention(head.trace.q, head.trace.k, head.trace.v, visible=head.trace.visible)
    outputs = np.stack([_reals(result) for result in hashed])
    dense_outputs = np.stack([_reals(result) for result in dense])
    rows = _StoredRows(head)
    return Figures(
        label=head.label, visible=head.trace.visible,
        full=_column(hashed, "full"), coarse=_column(hashed, "coarse"),
        summaries=_column(hashed, "summaries"),
        hash_cycles=_latencies(hashed), dense_cycles=_latencies(dense),
        limit=_limits(config, head, hashed, Select.BUDGET),
        dense_limit=_limits(config, head, dense, Select.DENSE),
        interval=_interval([results[at] for at in job.burst[index]]),
        hash_bytes=_column(hashed, "beats") * config.memory_bytes,
        dense_bytes=_column(dense, "beats") * config.memory_bytes,
        errors=np.stack([rows.errors(query, chosen[query].items, output, config.query_bits)
                         for query, output in enumerate(outputs)]),
        cosines=cosine(outputs, exact), dense_cosines=cosine(dense_outputs, exact),
        mass=np.stack([_mass(head.trace, query, lse[query], result.choice.classes)
                       for query, result in enumerate(chosen)]),
        distances=_distances(job, head, chosen[0].choice.classes),
        compared=compared)


def _compare(job, index, results, twins):
    where = job.commands(index)
    operations = job.session.operations
    try:
        compared = compare(*([part[at] for at in where] for part in (operations, results, twins)))
    except AssertionError as error:
        raise Mismatch(f"{job.heads[index].label}: {error}") from error
    for at in where:
        if twins[at].error:
            raise Mismatch(f"{job.heads[index].label}: operation {at} failed: {twins[at].error!r}")
    return compared


def _reals(result):
    return result.outputs.view(np.float32).astype(np.float64)


def _column(results, name):
    return np.array([getattr(result, name) for result in results])


def _latencies(results):
    return _column(results, "output_cycle") - _column(results, "start_cycle")


def _interval(results):
    if len(results) == 1:
        return float(_latencies(results)[0])
    return (results[-1].output_cycle - results[0].output_cycle) / (len(results) - 1)


def _limits(config, head, results, select):
    works = [Work(visible=int(visible), full=result.full, coarse=result.coarse,
                  summaries=result.summaries, select=select)
             for visible, result in zip(head.trace.visible, results, strict=True)]
    return np.array([predict(config, work, MEMORY_LATENCY).latency_limit for work in works])


class _StoredRows:
    """Rows of a head as the unit reads them, in float64."""

    def __init__(self, head):
        self.head = head
        tokens = head.trace.token_count // PAGE_TOKENS * PAGE_TOKENS
        self.key_pages, self.value_pages = (
            page_summaries(*(part[:tokens] for part in rows)) for rows in (head.keys, head.values))
        self.largest = np.abs(dequantise(*head.values)).max(axis=-1)

    def errors(self, query, items, output, query_bits):
        """Largest error of each query head of the group, relative to the largest value read.

        A summary counts with the values that it stands for: see numerics section 12.
        """
        keys = dequantise(*pipeline.gather(items, self.head.keys, self.key_pages))
        values = dequantise(*pipeline.gather(items, self.head.values, self.value_pages))
        firsts = items.positions[items.kinds == Kind.SUMMARY, np.newaxis]
        summed = self.largest[firsts + np.arange(PAGE_TOKENS)]
        largest = max(np.abs(values).max(), summed.max(initial=0.0))
        queries = dequantise_query(
            self.head.mantissas[query], self.head.exponents[query], query_bits)
        wanted = np.stack([weighted_attention(one, keys, values, items.weights)[0]
                           for one in queries])
        difference = np.abs(output - wanted).max(axis=-1)
        return difference / largest if largest else difference


def _mass(trace, query, lse, classes):
    """Exact attention on skipped, coarse and full tokens: [group, 3]."""
    logits = trace.q[query] @ trace.k[:len(classes), 0].T / np.sqrt(trace.head_dim)
    probabilities = np.exp(logits - lse[:, np.newaxis])
    return np.stack([probabilities[:, classes == kind].sum(axis=-1)
                     for kind in (SKIPPED, COARSE, FULL)], axis=-1)


def _distances(job, head, classes):
    """Histograms of the code distance from the first query, of each class: [3, bins]."""
    config = job.session.config
    matrices = job.encoders
    distances = hashing.distance(
        hashing.encode_queries(matrices[False], head.mantissas[0]),
        hashing.encode_keys(matrices[True], *head.keys)[:len(classes)], config.distance_shift)
    return np.stack([np.bincount(distances[classes == kind], minlength=config.distance_bins)
                     for kind in (SKIPPED, COARSE, FULL)])
