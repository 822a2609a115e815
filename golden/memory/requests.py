"""Streams of memory requests for benches, each settled by its arguments and its seed."""

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from golden.checks import check_int, check_integers
from golden.memory.image import ALL_BYTES, LINE_BYTES
from golden.memory.place import Place, line_of

__all__ = [
    "Operation", "Policy", "Region", "Requests", "assign", "attention", "conflicts", "hot",
    "mixture", "sequential", "strided", "uniform",
]

NO_META = -1


class Operation(IntEnum):
    """What a request asks for. A write with all bytes enabled is whole, otherwise partial."""

    READ = 0
    WRITE = 1


class Region(IntEnum):
    """What a line holds."""

    ANY = 0
    K = 1
    V = 2


class Policy(IntEnum):
    """Which tier holds which region."""

    SEMANTIC = 0  # K near, V far: what is all read is near, what is gathered is far
    FAR = 1  # all far
    INTERLEAVED = 2  # pages of K, then V, near and far in turn
    SWAPPED = 3  # V near, K far


@dataclass(frozen=True, eq=False)
class Requests:
    """Requests in the order in which they are issued.

    Parameters
    ----------
    operation : integer array [n], of :class:`Operation`
    line : integer array [n]
        Line number of 64 bytes.
    enables : uint64 array [n]
        Bit i enables byte i of a write; 0 for reads.
    data : uint8 array [n, 64]
        0 for reads.
    poison : bool array [n]
    meta : integer array [n]
        MetaValue to store, 0..3, or -1 for none.
    region : integer array [n], of :class:`Region`
    """

    operation: np.ndarray
    line: np.ndarray
    enables: np.ndarray
    data: np.ndarray
    poison: np.ndarray
    meta: np.ndarray
    region: np.ndarray

    def __post_init__(self):
        count = (len(self.operation),)
        check_integers("operation", self.operation, 0, max(Operation), count)
        check_integers("line", self.line, 0, (1 << 58) - 1, count)
        check_integers("data", self.data, 0, 255, (*count, LINE_BYTES))
        check_integers("meta", self.meta, NO_META, 3, count)
        check_integers("region", self.region, 0, max(Region), count)
        for name, dtype in (("enables", np.uint64), ("poison", np.bool_)):
            array = getattr(self, name)
            if array.shape != count or array.dtype != dtype:
                raise ValueError(f"{name} must be a {dtype.__name__} array of shape {count}, "
                                 f"not {array.dtype} {array.shape}")

    def __len__(self):
        return len(self.operation)

    def __add__(self, other):
        return Requests(*(
            np.concatenate([getattr(self, field.name), getattr(other, field.name)])
            for field in fields(self)
        ))

    def take(self, order):
        """The requests of an index array, in its order."""
        return Requests(*(getattr(self, field.name)[order] for field in fields(self)))

    @property
    def writes(self):
        """Bool array [n]."""
        return self.operation == Operation.WRITE

    def apply(self, image):
        """Carry all out on an :class:`~golden.memory.image.Image`; the list of what reads return,
        ``None`` for writes."""
        answers = []
        for index, line in enumerate(self.line.tolist()):
            meta = None if self.meta[index] == NO_META else int(self.meta[index])
            if self.operation[index] == Operation.READ:
                answers.append(image.read(line, meta))
            else:
                image.write(line, self.data[index], int(self.enables[index]),
                            bool(self.poison[index]), meta)
                answers.append(None)
        return answers


def _requests(line, writes, random, region=Region.ANY):
    """Whole reads and writes; writes carry random bytes."""
    line = np.asarray(line, np.int64)
    writes = np.broadcast_to(writes, line.shape)
    data = random.integers(0, 256, (len(line), LINE_BYTES), np.uint8)
    return Requests(
        operation=np.where(writes, Operation.WRITE, Operation.READ), line=line,
        enables=np.where(writes, np.uint64(ALL_BYTES), np.uint64(0)),
        data=data * writes[:, None].astype(np.uint8), poison=np.zeros(len(line), bool),
        meta=np.full(len(line), NO_META), region=np.full(len(line), int(region)),
    )


def _share(name, value):
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in 0..1, not {value!r}")
    return value


def strided(count, stride, start=0, writes=False, seed=0):
    """``count`` reads or writes of the lines ``start``, ``start + stride``, ..."""
    count = check_int("count", count, 0, 1 << 30)
    return _requests(start + stride * np.arange(count), writes, np.random.default_rng(seed))


def sequential(count, start=0, writes=False, seed=0):
    """``count`` reads or writes of consecutive lines."""
    return strided(count, 1, start, writes, seed)


def uniform(count, lines, write_share=0.0, seed=0):
    """Requests to random lines of 0..``lines`` - 1, writes with probability ``write_share``."""
    random = np.random.default_rng(seed)
    writes = random.random(count) < _share("write_share", write_share)
    return _requests(random.integers(0, lines, count), writes, random)


def mixture(count, lines, seed=0, write_share=0.5, partial_share=0.3, poison_share=0.02,
            meta_share=0.1):
    """Random requests of every kind, close together so that they meet each other's lines.

    Shares of partial and poisoned writes are of the writes, that of requests with a MetaValue of
    all. Half of the partial writes enable a run of bytes, the others any bytes, none included.
    """
    random = np.random.default_rng(seed)
    base = uniform(count, lines, write_share, seed)
    run = np.array([
        ((1 << int(size)) - 1 << int(first)) & ALL_BYTES
        for first, size in random.integers(0, LINE_BYTES, (count, 2))
    ], np.uint64)
    scattered = random.integers(0, 1 << 64, count, np.uint64)
    scattered = np.where(random.random(count) < 0.05, np.uint64(0), scattered)
    partial = np.where(random.random(count) < 0.5, run, scattered)
    chosen = base.writes & (random.random(count) < _share("partial_share", partial_share))
    poison = base.writes & (random.random(count) < _share("poison_share", poison_share))
    meta = np.where(random.random(count) < _share("meta_share", meta_share),
                    random.integers(0, 4, count), NO_META)
    return Requests(base.operation, base.line, np.where(chosen, partial, base.enables), base.data,
                    poison, meta, base.region)


def hot(count, lines, hot_lines, hot_share=0.9, write_share=0.0, seed=0):
    """A share of the requests goes to the last ``hot_lines`` of ``lines``, the rest anywhere."""
    random = np.random.default_rng(seed)
    hot_lines = check_int("hot_lines", hot_lines, 1, lines)
    line = np.where(
        random.random(count) < _share("hot_share", hot_share),
        lines - hot_lines + random.integers(0, hot_lines, count), random.integers(0, lines, count),
    )
    writes = random.random(count) < _share("write_share", write_share)
    return _requests(line, writes, random)


def conflicts(count, organisation, writes=False, seed=0):
    """Each request opens another row of the same bank: the worst there is."""
    rows = np.arange(check_int("count", count, 0, 1 << 30)) % organisation.rows
    zero = np.zeros(count, int)
    return _requests(line_of(Place(zero, zero, rows, zero), organisation), writes,
                     np.random.default_rng(seed))


def attention(queries, tokens, selected, row_lines=2, seed=0):
    """What decode steps of one KV head read: all K rows in order, and chosen V rows.

    A query's V rows are known once its K rows were read, so they are read among the K rows of the
    next query, evenly spread. ``line`` is relative to the region: token t has lines
    ``t * row_lines`` onward in both. :func:`assign` gives them addresses.

    Parameters
    ----------
    queries, tokens : int
    selected : int
        V rows of each query, different tokens in rising order, at most ``tokens``.
    row_lines : int
        Lines of a row: 2 for 128 elements of 8 bits.
    """
    random = np.random.default_rng(seed)
    queries = check_int("queries", queries, 1, 1 << 20)
    tokens = check_int("tokens", tokens, 1, 1 << 24)
    selected = check_int("selected", selected, 0, tokens)
    row_lines = check_int("row_lines", row_lines, 1, 64)
    k_count, v_count = tokens * row_lines, selected * row_lines
    lines, regions, times = [], [], []
    for query in range(queries):
        chosen = np.sort(random.choice(tokens, selected, replace=False))
        lines.append(np.arange(k_count))
        lines.append((chosen[:, None] * row_lines + np.arange(row_lines)).reshape(-1))
        regions.append(np.repeat([Region.K, Region.V], [k_count, v_count]))
        times.append(query + np.arange(k_count) / k_count)
        times.append(query + 1 + np.arange(v_count) / max(v_count, 1))
    order = np.argsort(np.concatenate(times), kind="stable")
    requests = _requests(np.concatenate(lines), False, random)
    regions = np.concatenate(regions).astype(np.int64)
    return Requests(*(
        regions if field.name == "region" else getattr(requests, field.name)
        for field in fields(requests)
    )).take(order)


def assign(requests, policy, near, far, region_lines, page_lines=64):
    """Requests of :func:`attention` at the addresses that a policy gives them.

    Parameters
    ----------
    policy : Policy
    near, far : int
        First line of either tier's window; each must have room for both regions.
    region_lines : int
        Lines of a region; V follows K where both are in one tier.
    page_lines : int
        What INTERLEAVED moves as a whole.
    """
    policy = Policy(policy)
    region_lines = check_int("region_lines", region_lines, 1, 1 << 40)
    if len(requests) and requests.line.max() >= region_lines:
        raise ValueError(f"region_lines must be above {requests.line.max()}, not {region_lines!r}")
    is_k = requests.region == Region.K
    packed = requests.line + np.where(is_k, 0, region_lines)
    page, offset = np.divmod(packed, check_int("page_lines", page_lines, 1, 1 << 20))
    line = {
        Policy.SEMANTIC: np.where(is_k, near, far) + requests.line,
        Policy.SWAPPED: np.where(is_k, far, near) + requests.line,
        Policy.FAR: far + packed,
        Policy.INTERLEAVED: np.where(page % 2, far, near) + page // 2 * page_lines + offset,
    }[policy]
    return Requests(*(
        line if field.name == "line" else getattr(requests, field.name)
        for field in fields(requests)
    ))
