"""Contexts and queries for the tests of the retrieval, and what golden says about them.

Values are plain integers, lists and dicts, which the Amaranth harness and the cocotb benches take.
"""

import random
from dataclasses import dataclass, field

import numpy as np

from golden.hashing import distance, int_to_code
from golden.selection import FULL, Select, Selection, select
from hw.config import PAGE_TOKENS, AttentionConfig

FULL_ITEM, COARSE_ITEM, SUMMARY_ITEM, END_ITEM = range(4)
NO_ERROR, BUS_ERROR, SHORT_ERROR = 0, 8, 9


def make_config(**changes):
    """A small configuration with the given fields changed."""
    fields = {"head_dim": 32, "code_bits": 32, "lanes": 16, "max_tokens": 512, "memory_bytes": 16,
              **changes}
    return AttentionConfig(**fields)


def config_name(config):
    return (f"{config.code_source}-p{config.lanes}-b{config.code_bits}-g{config.group}-"
            f"bins{config.bins_per_cycle}")


@dataclass
class Context:
    """Codes (integers) and exponents of a context, and where it lies."""

    codes: list
    keys: list       # exponents per token, per block
    values: list
    line: int        # first line in the code memory, or
    address: int     # byte address in memory

    def __len__(self):
        return len(self.codes)

    def page(self, side, number):
        """Largest exponents of a page, per block."""
        rows = (self.keys if side == "keys" else self.values)[
            number * PAGE_TOKENS:(number + 1) * PAGE_TOKENS]
        return [max(column) for column in zip(*rows, strict=True)]


@dataclass
class Scene:
    """Contexts of one unit, and the queries asked of them.

    Parameters
    ----------
    config : AttentionConfig
    seed : int
    """

    config: AttentionConfig
    seed: int
    contexts: list = field(default_factory=list)

    def __post_init__(self):
        self.rng = random.Random(self.seed)
        self._next_line = 0
        self._next_address = 0

    def add_context(self, tokens, *, distinct_codes=None):
        """Add a context; few ``distinct_codes`` make many ties. Default: a random number."""
        config, rng = self.config, self.rng
        distinct_codes = distinct_codes or rng.choice([2, 6, 40, 1000])
        # Around one centre, so that distances vary.
        centre = rng.getrandbits(config.code_bits)
        pool = [self.near(centre, rng.randrange(config.code_bits // 2))
                for _ in range(distinct_codes)]

        def rows():
            return [[rng.randrange(255) for _ in range(config.blocks)] for _ in range(tokens)]

        # Lines of whole pages, a gap behind each context.
        step = max(1, PAGE_TOKENS // config.lanes)
        lines = -(-tokens // config.lanes)
        context = Context([rng.choice(pool) for _ in range(tokens)], rows(), rows(),
                          self._next_line, self._next_address)
        self._next_line += -(-lines // step) * step + step
        self._next_address += (lines + 1) * config.code_line_bytes
        self.contexts.append(context)
        return context

    def near(self, code, flips):
        """A code with a few bits flipped."""
        for bit in self.rng.sample(range(self.config.code_bits), flips):
            code ^= 1 << bit
        return code

    def code_writes(self):
        """``code_write`` items of all contexts, as tokens are appended one by one."""
        lanes = self.config.lanes
        for context in self.contexts:
            first_page = context.line * lanes // PAGE_TOKENS
            for position, code in enumerate(context.codes):
                page = position // PAGE_TOKENS
                so_far = slice(page * PAGE_TOKENS, position + 1)
                yield {
                    "line": context.line + position // lanes, "lane": position % lanes,
                    "code": code, "keys": context.keys[position],
                    "values": context.values[position],
                    "page": first_page + page,
                    "page_keys": np.max(context.keys[so_far], axis=0).tolist(),
                    "page_values": np.max(context.values[so_far], axis=0).tolist(),
                }

    def memory_image(self):
        """Bytes of the code lines of all contexts."""
        config = self.config
        image = bytearray(self.rng.randbytes(self._next_address))
        for context in self.contexts:
            for first in range(0, len(context), config.lanes):
                tokens = range(first, min(first + config.lanes, len(context)))
                codes = b"".join(context.codes[t].to_bytes(config.code_bits // 8, "little")
                                 for t in tokens)
                exponents = b"".join(bytes(context.keys[t] + context.values[t]) for t in tokens)
                start = context.address + first // config.lanes * config.code_line_bytes
                image[start:start + len(codes)] = codes
                start += config.lanes * config.code_bits // 8
                image[start:start + len(exponents)] = exponents
        return bytes(image)

    def make_query(self, context, *, visible=None, select=None, **changes):
        """A query on a context: random where nothing is given. Returns the ``retrieval_job``."""
        rng = self.rng
        visible = len(context) if visible is None else visible
        select = rng.choice(list(Select)) if select is None else select
        full, coarse = self._amounts(select, visible)

        def sometimes(largest):
            return rng.choice([0, 0, rng.randrange(5), rng.randrange(largest + 1)])

        job = {
            "tag": rng.getrandbits(16), "slot": rng.randrange(self.config.query_slots),
            "select": int(select), "logits_only": rng.getrandbits(1),
            "summaries": rng.getrandbits(1), "visible": visible, "full": full, "coarse": coarse,
            "sink": sometimes(min(2 * visible, self.config.max_tokens)),
            "recent": sometimes(min(2 * visible, self.config.max_tokens)),
            "minimum": sometimes(visible),
            "entry": {"length": len(context), "code_line": context.line,
                      "code_address": context.address},
        }
        job.update(changes)
        centre = context.codes[rng.randrange(len(context))]
        codes = [self.near(centre, rng.randrange(self.config.code_bits // 3))
                 for _ in range(self.config.group)]
        return {"job": job, "codes": codes}

    def _amounts(self, select, visible):
        """Full and coarse of a random query, the ends of the ranges included."""
        rng = self.rng
        if select == Select.BUDGET:
            full = rng.choice([0, 1, visible, rng.randrange(visible + 1)])
            return full, rng.choice([0, visible - full, rng.randrange(visible - full + 1)])
        if select == Select.PERCENTILE:
            return tuple(rng.choice([0, 1, 1 << 16, rng.randrange(1 << 16), rng.randrange(1 << 14)])
                         for _ in range(2))
        bins = self.config.distance_bins
        return tuple(rng.choice([0, 1, bins - 1, bins, 3 * bins, rng.randrange(bins)])
                     for _ in range(2))

    def context_of(self, query):
        """The context that a query reads."""
        entry = query["job"]["entry"]
        return next(context for context in self.contexts
                    if context.line == entry["code_line"]
                    and context.address == entry["code_address"])

    def distances(self, query):
        """Distance of each token of the query's context."""
        config = self.config
        context = self.context_of(query)
        codes = [np.stack([int_to_code(code, config.code_bits) for code in some])
                 for some in (query["codes"], context.codes)]
        return distance(*codes, config.distance_shift)

    def expected(self, query):
        """(tokens, counts) that golden finds for a query."""
        job = query["job"]
        context = self.context_of(query)
        visible = job["visible"]
        selection = Selection(
            select=Select(job["select"]), summaries=bool(job["summaries"]),
            **{name: job[name] for name in ("full", "coarse", "sink", "recent", "minimum")})
        choice = select(self.distances(query), visible, selection, self.config.distance_bins)
        has_summaries = selection.summaries and selection.select != Select.DENSE
        items = []
        for page in reversed(range(-(-visible // PAGE_TOKENS))):
            items += self._page_items(context, choice.classes, page, visible, has_summaries)
        counts = {"error": NO_ERROR, "beats": self.code_beats(query)}
        kinds = {"full": FULL_ITEM, "coarse": COARSE_ITEM, "summaries": SUMMARY_ITEM}
        for name, kind in kinds.items():
            counts[name] = sum(item["kind"] == kind for item in items)
        return [*items, {"kind": END_ITEM}], counts

    def _page_items(self, context, classes, page, visible, has_summaries):
        positions = range(page * PAGE_TOKENS, min((page + 1) * PAGE_TOKENS, visible))
        taken = [position for position in reversed(positions) if classes[position]]
        for position in taken:
            yield {"kind": FULL_ITEM if classes[position] == FULL else COARSE_ITEM,
                   "position": position, "weight": 1,
                   "keys": context.keys[position], "values": context.values[position]}
        skipped = len(positions) - len(taken)
        if has_summaries and len(positions) == PAGE_TOKENS and skipped:
            yield {"kind": SUMMARY_ITEM, "position": positions[0], "weight": skipped,
                   "keys": context.page("keys", page), "values": context.page("values", page)}

    def code_beats(self, query):
        """Bus beats of the code lines of a query."""
        if self.config.code_source == "resident":
            return 0
        return -(-query["job"]["visible"] // self.config.lanes) * self.config.code_line_beats


def plain_item(item):
    """A ``token_item`` as `Scene.expected` writes it: enums as integers, END without content."""
    kind = int(getattr(item["kind"], "value", item["kind"]))
    return {"kind": END_ITEM} if kind == END_ITEM else {**item, "kind": kind}


def plain_counts(counts):
    """``selection_counts`` as `Scene.expected` writes them; without beats if the query failed."""
    plain = {**counts, "error": int(getattr(counts["error"], "value", counts["error"]))}
    if plain["error"] != NO_ERROR:
        del plain["beats"]
    return plain


def boundary_lengths(config):
    """Visible lengths at which something changes: lanes, pages, groups of pages, capacity."""
    lanes = config.lanes
    lengths = {1, lanes - 1, lanes, lanes + 1, PAGE_TOKENS - 1, PAGE_TOKENS, PAGE_TOKENS + 1,
               2 * PAGE_TOKENS, 255, 256, 257, config.max_tokens - 1, config.max_tokens}
    return sorted(length for length in lengths if 1 <= length <= config.max_tokens)
