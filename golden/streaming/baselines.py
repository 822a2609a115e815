"""What the scheduler is compared with: scheduling section 7.

Sources: Cake (compute from the front, load from the back) and CacheGen's rule as SparKV (arXiv
2604.21231) describes its baselines.
"""

import heapq
from typing import NamedTuple

import numpy as np

from golden.streaming.policy import Route
from golden.streaming.schedule import Schedule

__all__ = ["Result", "all_stream", "all_compute", "static_hybrid", "cake", "cachegen"]


class Result(NamedTuple):
    """Ticks until the last chunk was present, and how many chunks were streamed."""

    makespan: int
    streamed: int


def all_stream(costs, rule):
    """A ``Schedule`` that streams everything, in order of the ids."""
    return _cut(costs, rule, 0)


def all_compute(costs, rule):
    """A ``Schedule`` that computes everything: the local prefill."""
    return _cut(costs, rule, costs.grid.count)


def static_hybrid(costs, rule):
    """A ``Schedule`` with one cut: layers before it are computed, in order of the ids, the others
    not.

    The cut is the best one for the predicted times, and nothing moves afterwards.
    """
    heads = costs.grid.heads
    computed = np.concatenate(([0], np.cumsum(costs.compute)))[::heads]
    streamed = costs.stream.sum() - np.concatenate(([0], np.cumsum(costs.stream)))[::heads]
    return _cut(costs, rule, heads * int(np.argmin(np.maximum(computed, streamed))))


def _cut(costs, rule, cut):
    chunks = range(costs.grid.count)
    return Schedule(grid=costs.grid, rule=rule, stream=(chunks[cut:],), compute=(chunks[:cut],))


def cake(costs, rule, link, device, outstanding=2):
    """Compute from the first chunk on, load from the last one back, until they meet.

    Parameters
    ----------
    link, device : object with ``request(now, chunk) -> Answer``
        Whose answers are all good.
    outstanding : int
        Requests in flight per route.

    Returns
    -------
    Result
    """
    edges = costs.grid.edges[rule]
    front, back = 0, costs.grid.count - 1
    present, computed, flying = set(), set(), [0, 0]
    answers, now, streamed = [], 0, 0
    while True:
        while front <= back and flying[Route.COMPUTE] < outstanding:
            ready = present.issuperset(edges.needs_present[front])
            if not (ready and computed.issuperset(edges.needs_computed[front])):
                break
            heapq.heappush(answers, (device.request(now, front).time, Route.COMPUTE, front))
            flying[Route.COMPUTE] += 1
            front += 1
        while front <= back and flying[Route.STREAM] < outstanding:
            heapq.heappush(answers, (link.request(now, back).time, Route.STREAM, back))
            flying[Route.STREAM] += 1
            back -= 1
            streamed += 1
        if not answers:
            return Result(now, streamed)
        now, route, chunk = heapq.heappop(answers)
        flying[route] -= 1
        present.add(chunk)
        if route == Route.COMPUTE:
            computed.add(chunk)


def cachegen(costs, link_trace, compute_trace, *, target, levels=(1.6, 1.0)):
    """CacheGen's rule, token block by token block, against a target for the time to first token.

    For each block in order: the best quality level at which the rest, at the rate last seen,
    arrives within the time left; if none does, the block is computed. The link goes on while a
    block is computed, which is kinder than the original.

    Parameters
    ----------
    link_trace, compute_trace : Trace
    target : int
        Ticks.
    levels : sequence of float
        Bytes relative to ``costs.wire_bytes``, best quality first. The default never falls below
        the quality that the other schedulers stream.

    Returns
    -------
    Result
    """
    grid = costs.grid
    rows = costs.wire_bytes.reshape(grid.blocks, -1).sum(axis=1)
    work = costs.compute.reshape(grid.blocks, -1).sum(axis=1)
    rate = costs.wire_bytes.sum() / costs.stream.sum()
    link_free = compute_free = streamed = 0
    present = 0  # when all blocks so far are there
    for block in range(grid.blocks):
        rest = int(rows[block:].sum())
        fitting = [level for level in levels if level * rest / rate <= target - link_free]
        if fitting:
            amount = int(fitting[0] * rows[block])
            finish = link_trace.finish(link_free, amount)
            rate = amount / (finish - link_free)
            link_free = finish
            streamed += grid.layers * grid.heads
            present = max(present, finish)
        else:
            compute_free = compute_trace.finish(max(compute_free, present), int(work[block]))
            present = max(present, compute_free)
    return Result(present, streamed)
