"""Cycles and errors of the attention unit."""

import numpy as np

from golden.cycles import Work, predict
from golden.selection import Select, Selection
from golden.shapes import CASES, error_of
from hw.config import AttentionConfig
from sim.attention import Counters, Memory, Session, Wait
from sim.attention.layout import place
from sim.attention.random_work import random_append, random_query, weights
from sim.attention.twin import compare, expected_results

__all__ = ["GROUPS"]

MEMORY_LATENCY = 20
SEED = 1

# CAMformer's size, with a beat as wide as a row.
SMALL = AttentionConfig(
    head_dim=64, code_bits=64, lanes=16, max_tokens=1024, memory_bytes=64, encoder_lanes=16,
    bins_per_cycle=16, result_lanes=32, read_rows=64)

LARGE = AttentionConfig(
    head_dim=128, code_bits=64, lanes=32, max_tokens=8192, resident_tokens=16384,
    memory_bytes=64, encoder_lanes=8, result_lanes=16, table_pages=1024, read_rows=64)

MATCH_TOKENS = (16, 17, 31, 500, 512, 1000, 1023, 1024)


class Bench:
    """One session on filled contexts, checked against the golden model."""

    def __init__(self, config, capacities):
        self.config = config
        self.capacities = capacities
        self.rng = np.random.default_rng(SEED)
        placement = place(config, capacities, seed=SEED)
        self.session = Session(config, memory_size=placement.memory_size)
        self.session.add(Memory(controls={
            "read_latency": MEMORY_LATENCY, "write_latency": MEMORY_LATENCY}))
        self.session.add(*placement.operations, *weights(config))
        for context, capacity in enumerate(capacities):
            for start in range(0, capacity, 512):
                count = min(512, capacity - start)
                self.session.add(random_append(config, self.rng, context, count, with_codes=True))
        self.session.add(Counters())

    def query(self, selection, *, context=0, alone=True, **fields):
        """Add a query, by default one that starts when all before it are done."""
        if alone:
            self.session.add(Wait())
        fields = {"visible": 0, "logits_only": False, "want_state": False, "want_output": True,
                  "codes": None, **fields}
        return self.session.add(random_query(
            self.config, self.rng, context, self.capacities[context], selection=selection,
            **fields))

    def run(self):
        results = self.session.run(seed=SEED)
        compare(self.session.operations, results,
                expected_results(self.config, self.session.operations))
        return results


def latency(result):
    """Cycles from the command to the last output beat."""
    return result.output_cycle - result.start_cycle


def small():
    """Top 32 of 1,024, against CAMformer's 721 cycles; and what code lines cost per code."""
    bench = Bench(SMALL, [1024])
    top = Selection(select=Select.BUDGET, full=32)
    plain = bench.query(top)
    ready_made = bench.query(
        top, codes=bench.rng.integers(0, 2, (1, SMALL.code_bits), dtype=np.uint8))
    nobody = Selection(select=Select.DISTANCE)
    counters = []
    for tokens in MATCH_TOKENS:
        bench.session.add(Counters())
        bench.query(nobody, visible=tokens)
        counters.append(bench.session.add(Counters()))
    results = bench.run()

    # Beyond the first line, each line costs a cycle, wherever in it the last token is.
    cycles = [results[index]["cycles_matching"] for index in counters]
    lines = [-(-tokens // SMALL.lanes) for tokens in MATCH_TOKENS]
    exact = all(cycle - cycles[0] == line - lines[0]
                for cycle, line in zip(cycles, lines, strict=True))
    codes = SMALL.lanes * (lines[-1] - lines[0]) / (cycles[-1] - cycles[0])
    work = Work(visible=1024, full=32)
    return {
        "attention.top32_n1024.cycles": latency(results[plain]),
        "attention.top32_n1024.cycles_ready_made_code": latency(results[ready_made]),
        "attention.top32_n1024.limit": predict(SMALL, work, MEMORY_LATENCY).latency_limit,
        "attention.match.codes_per_cycle": codes,
        "attention.match.no_bubble_at_any_length": exact,
    }


def large():
    """8,192 tokens: alone, dense, and back to back on two contexts."""
    bench = Bench(LARGE, [8192, 8192])
    hashed = Selection(select=Select.BUDGET, full=128, coarse=512)
    alone = bench.query(hashed)
    dense = bench.query(Selection(select=Select.DENSE))
    bench.session.add(Wait())
    queue = [bench.query(hashed, context=index % 2, alone=False) for index in range(8)]
    results = bench.run()

    hash_limit = predict(
        LARGE, Work(visible=8192, full=128, coarse=512), MEMORY_LATENCY)
    dense_limit = predict(
        LARGE, Work(visible=8192, full=8192, select=Select.DENSE), MEMORY_LATENCY)
    # The first of the queue has nothing before it to hide behind.
    ends = [results[index].end_cycle for index in queue]
    interval = (ends[-1] - ends[0]) / (len(ends) - 1)
    return {
        "attention.n8192.hash.cycles": latency(results[alone]),
        "attention.n8192.hash.limit": hash_limit.latency_limit,
        "attention.n8192.hash.predicted": hash_limit.latency,
        "attention.n8192.dense.cycles": latency(results[dense]),
        "attention.n8192.dense.limit": dense_limit.latency_limit,
        "attention.n8192.dense.predicted": dense_limit.latency,
        "attention.n8192.speedup": latency(results[dense]) / latency(results[alone]),
        "attention.pipelined.cycles": interval,
        "attention.pipelined.limit": hash_limit.interval_limit,
    }


def errors():
    """Largest error over max |v| on each of the inputs that break fixed-point designs."""
    found = {case.__name__: error_of(*case(np.random.default_rng(11))) for case in CASES}
    return {
        "attention.error.max": max(found.values()),
        **{f"attention.error.{name}": error for name, error in found.items()},
    }


GROUPS = {"small": small, "large": large, "errors": errors}
