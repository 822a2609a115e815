"""What the tests of the whole unit share: configurations, and sessions that know what must come."""

from dataclasses import replace

import numpy as np

from golden.selection import Select, Selection
from hw.attention.contexts import ContextFault
from hw.config import PAGE_TOKENS, AttentionConfig
from hw.presets import PRESETS
from sim.attention import Context, Memory, Raw, Reset, Session, Wait
from sim.attention.encoding import encode
from sim.attention.layout import place
from sim.attention.random_work import random_append, random_query, weights
from sim.attention.twin import compare, expected_results
from sim.memory import MemoryFault

__all__ = ["CONFIGS", "Scene"]

TINY = replace(PRESETS["tiny"].attention, max_tokens=256, resident_tokens=512, table_pages=64)

# Each is a model to be built, so each shows several things at once.
CONFIGS = {
    "tiny": TINY,
    # Lines of one page, in memory; codes as long as a beat.
    "streamed": replace(TINY, lanes=16, code_source="streamed", resident_tokens=None,
                        max_tokens=512, code_bits=128),
    # Four heads; rows of one beat, with one exponent; lines of two pages; short mantissas.
    "wide": AttentionConfig(
        head_dim=64, code_bits=64, lanes=32, max_tokens=256, resident_tokens=512, memory_bytes=64,
        group=4, exponent_block=64, query_bits=8, table_pages=64, encoder_lanes=4, result_lanes=8),
    # A plane takes two beats; two heads, and two sets of weights.
    "narrow": replace(TINY, memory_bytes=8, lanes=8, group=2, code_bits=32, encoder_sets=2),
    # Eight heads, whose distances share bins.
    "group8": replace(TINY, group=8, lanes=8, query_slots=2, encoder_lanes=8),
    # Two blocks per row, a long code, an even narrower memory.
    "blocks": replace(TINY, head_dim=64, code_bits=256, memory_bytes=4, lanes=16, read_rows=4,
                      resident_tokens=512, encoder_lanes=16),
    # Streamed lines of two pages, rows of one exponent, as `server` has them.
    "streamed_wide": replace(
        PRESETS["server"].attention, head_dim=64, memory_bytes=32, max_tokens=512, contexts=4,
        table_pages=64, exponent_block=64, result_lanes=8),
}

# The size is a parameter of the model: one for all, or each scene would build its own.
MEMORY_SIZE = 1 << 18


class Scene:
    """A session on contexts placed at random, with the errors that its commands must meet.

    Parameters
    ----------
    name : str
        Of `CONFIGS`.
    capacities : list of int
        Tokens of each context.
    seed : int
        Of everything random.
    stalls : float
        Share of idle and stalled cycles on the streams.
    latency : int
        Cycles of the memory.
    shuffle : bool
        Reads return late, and interleaved across ids.
    """

    def __init__(self, name, capacities=(128, 160, 96), *, seed, stalls=0.3, latency=7,
                 shuffle=True):
        self.config = config = CONFIGS[name]
        self.seed = seed
        self.rng = rng = np.random.default_rng(seed)
        self.placement = place(config, list(capacities), seed=seed,
                               row_gap=int(rng.integers(0, 2)), page_gap=int(rng.integers(0, 3)))
        assert self.placement.memory_size <= MEMORY_SIZE
        self.table, *contexts = self.placement.operations
        self.entries = [context.entry for context in contexts]
        for index, entry in enumerate(self.entries):
            entry["weight_set"] = index % config.encoder_sets
        self.lengths = [0] * len(capacities)
        self.faults = {}
        self.session = Session(config, memory_size=MEMORY_SIZE, idle_probability=stalls,
                               stall_probability=stalls)
        # The memory takes its seed at a reset.
        self.add(Memory(controls={"read_latency": latency, "write_latency": latency,
                                  "shuffle": int(shuffle), "seed": seed}), Reset())
        self.set_up()
        self.weights = [operation for weight_set in range(config.encoder_sets)
                        for operation in weights(config, seed=weight_set, weight_set=weight_set)]
        self.add(*self.weights)

    def add(self, *operations):
        """Add operations, and return the index of the last."""
        return self.session.add(*operations)

    def set_up(self):
        """Enter the block table and all contexts, empty."""
        self.add(*self.placement.operations)
        self.lengths = [0] * len(self.entries)

    def enter(self, context, *, fails=ContextFault.NONE, **changes):
        """Enter a context again, with some fields of its entry changed."""
        entry = {**self.entries[context], **changes}
        self.lengths[context] = entry["length"]
        index = self.add(Wait(), Context(index=context, entry=entry))
        if fails != ContextFault.NONE:
            self.faults[index] = fails
        return index

    def append(self, context, count, *, fails=None, **fields):
        """Append random tokens."""
        operation = replace(random_append(self.config, self.rng, context, count), **fields)
        return self._command(operation, fails, count)

    def append_rows(self, operation, *, fails=None):
        """Append the tokens of an operation."""
        return self._command(operation, fails, len(operation.keys))

    def _command(self, operation, fails, count):
        index = self.add(operation)
        if fails is None:
            self.lengths[operation.context] += count
        else:
            self.faults[index] = fails
        return index

    def query(self, context, select=Select.DENSE, full=0, coarse=0, *, fails=None, like=None,
              sink=0, recent=0, minimum=0, summaries=False, **fields):
        """Query with a random vector, or that of the query ``like``."""
        selection = Selection(select=select, full=full, coarse=coarse, sink=sink, recent=recent,
                              minimum=minimum, summaries=summaries)
        fields = {"logits_only": False, "want_output": True, "want_state": True, "codes": None,
                  "visible": 0, **fields}
        if like is None:
            operation = random_query(self.config, self.rng, context, 1, selection=selection,
                                     **fields)
        else:
            operation = replace(like, context=context, selection=selection, **fields)
        index = self.add(operation)
        if fails is not None:
            self.faults[index] = fails
        return index

    def random_queries(self, context, count=1, **fields):
        """Queries of any kind that the context allows."""
        for _ in range(count):
            index = self.add(random_query(
                self.config, self.rng, context, self.lengths[context], **fields))
        return index

    def raw(self, operation, *, fails, cut=0, **fields):
        """The command of an operation with fields changed, and its data made ``cut`` beats shorter.

        A negative ``cut`` makes them longer. The last beat is marked as such either way.
        """
        encoded, beats = encode(self.config, operation)
        count = max(1, len(beats) - cut)
        values = [beat["data"] for beat in beats] + [beats[0]["data"]] * count
        beats = [{"data": value, "last": int(place == count - 1)}
                 for place, value in enumerate(values[:count])]
        index = self.add(Raw(fields={**encoded, **fields}, beats=beats))
        self.faults[index] = fails
        return index

    def fault(self, kind, base=0, size=0):
        """Make bursts that start in a range of memory fail from here on."""
        self.add(Wait(), Memory(controls={
            "fault": MemoryFault(kind).value, "fault_base": base, "fault_limit": base + size}))

    def no_fault(self):
        self.fault(MemoryFault.NONE)

    def row_address(self, context, position, region="key"):
        """Byte address of a token's K or V row."""
        entry = self.entries[context]
        page = self.table.pages[entry["table_base"] + position // PAGE_TOKENS]
        return (entry[f"{region}_base"] + page * entry[f"{region}_page_stride"]
                + position % PAGE_TOKENS * entry[f"{region}_row_stride"])

    def twin(self):
        """What must come."""
        return expected_results(self.config, self.session.operations, self.faults)

    def run(self):
        """Carry all out, compare it with golden in every bit, and return the results."""
        return self.judge(self.session.run(seed=self.seed))

    def judge(self, results):
        """Compare results with golden, print how many values agreed, and return them."""
        compared = compare(self.session.operations, results, self.twin())
        for index, (operation, result) in enumerate(
                zip(self.session.operations, results, strict=True)):
            if isinstance(operation, Context):
                fault = ContextFault(result)
                wanted = self.faults.get(index, ContextFault.NONE)
                assert fault == wanted, f"operation {index}: {fault!r}, not {wanted!r}"
        print(f"seed {self.seed}: {compared} values agreed")
        return results
