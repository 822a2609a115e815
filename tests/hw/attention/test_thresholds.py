import random

import numpy as np
import pytest

from golden.selection import Select, Selection, thresholds
from hw.attention.histogram import Histogram
from hw.attention.thresholds import Thresholds, prefix_latency
from tests.hw.harness import run_stream_test
from tests.retrieval_scenes import config_name, make_config

CONFIGS = [
    make_config(),
    make_config(group=3, bins_per_cycle=1),
    make_config(code_bits=64, group=4, bins_per_cycle=16),
    make_config(bins_per_cycle=64),
]


def search_counts(selection, visible, others):
    """Counts that the searches are for, as docs/numerics.md section 10 writes them."""
    forced = visible - others
    if selection.select == Select.PERCENTILE:
        full = selection.full * visible >> 16
        coarse = selection.coarse * visible >> 16
    else:
        full, coarse = min(selection.full, visible), min(selection.coarse, visible)
    wanted = max(full - forced, 0)
    return {
        "full_count": min(wanted, others),
        "selected_count": min(wanted + coarse, others),
        "least_count": min(max(selection.minimum - forced, 0), others),
    }


class Case:
    """A query: its histogram, what it asks for, and the thresholds that golden finds."""

    def __init__(self, config, rng, select):
        self.config = config
        visible = rng.randrange(1, config.max_tokens + 1)
        others = rng.choice([visible, 0, rng.randrange(visible + 1)])
        used = rng.sample(range(config.distance_bins), rng.choice([1, 2, 9]))
        drawn = [rng.choice(used) for _ in range(others)]
        self.histogram = np.bincount(drawn, minlength=config.distance_bins)
        self.select = select
        minimum = rng.choice([0, 0, rng.randrange(visible + 1)])
        bins = config.distance_bins
        if select == Select.BUDGET:
            full = rng.choice([0, visible, rng.randrange(visible + 1)])
            coarse = rng.choice([0, visible - full, rng.randrange(visible - full + 1)])
        elif select == Select.PERCENTILE:
            full, coarse = (rng.choice([0, 1 << 16, rng.randrange(1 << 16)]) for _ in range(2))
        else:
            # Limits at and around a bin in use.
            full, coarse = (rng.choice([0, bins, *used, min(used) + 1]) for _ in range(2))
        selection = Selection(select=select, full=full, coarse=coarse, minimum=minimum)
        self.job = {"select": select.value, "full_limit": min(full, bins),
                    "selected_limit": min(coarse, bins),
                    "scope": {"visible": visible, "bank": rng.getrandbits(1)}}
        if select == Select.DENSE:
            self.expected = ((0, 0), (0, 0))
            return
        self.job.update(search_counts(selection, visible, others))
        self.expected = thresholds(self.histogram, visible, selection)

    def check(self, found):
        """Equal thresholds; every tie of a percentile may be told as more ties than there are."""
        for name, expected in zip(("full", "selected"), self.expected, strict=True):
            bin_, ties = expected
            assert found[name]["bin"] == bin_
            if self.select == Select.PERCENTILE and ties and ties == self.histogram[bin_]:
                assert found[name]["ties"] >= ties
            else:
                assert found[name]["ties"] == ties
            assert found["limit"] >= bin_ + (ties > 0)
        assert found["limit"] == max(found[name]["bin"] for name in ("full", "selected")) + 1
        assert found["scope"]["visible"] == self.job["scope"]["visible"]
        assert found["scope"]["bank"] == self.job["scope"]["bank"]


def shift_out(unit, cases, config):
    """A testbench in the place of the histogram."""
    step = config.bins_per_cycle

    async def serve(ctx):
        waiting = [case.histogram.tolist() for case in cases if case.select != Select.DENSE]
        for histogram in waiting:
            histogram += [0] * (-len(histogram) % step)
            for first in range(0, len(histogram), step):
                ctx.set(unit.bins, histogram[first:first + step])
                shift = 0
                while not shift:
                    _, _, shift = await ctx.tick().sample(unit.shift)
        ctx.set(unit.bins, [0] * step)
    return serve


def find(cases, *, seed=1, stall_probability=0.0):
    config = cases[0].config
    unit = Thresholds(config, chunks=Histogram(config).chunks)
    result = run_stream_test(
        unit, feeds={"i": [case.job for case in cases]}, sinks={"o": len(cases)}, seed=seed,
        stall_probability=stall_probability, testbenches=[shift_out(unit, cases, config)])
    for case, found in zip(cases, result.outputs["o"], strict=True):
        case.check(found)
    return result


@pytest.mark.parametrize("config", CONFIGS, ids=config_name)
@pytest.mark.parametrize("stall_probability", [0.0, 0.5])
def test_every_mode(config, stall_probability):
    rng = random.Random(5)
    find([Case(config, rng, rng.choice(list(Select))) for _ in range(80)],
         stall_probability=stall_probability)


@pytest.mark.parametrize("config", CONFIGS, ids=config_name)
def test_cycles(config):
    rng = random.Random(6)
    result = find([Case(config, rng, select) for select in (Select.BUDGET, Select.DENSE) * 3])
    chunks = Histogram(config).chunks
    taken, given = result.input_cycles["i"], result.output_cycles["o"]
    latencies = [out - start for start, out in zip(taken, given, strict=True)]
    assert latencies == [chunks + 1 + prefix_latency(config.bins_per_cycle), 1] * 3
    # The next query is taken in the cycle after the thresholds left.
    assert taken[1:] == [out + 1 for out in given[:-1]]


@pytest.mark.parametrize("arguments, message", [
    ({"config": 1, "chunks": 1}, "Thresholds config must be an AttentionConfig, not 1"),
    ({"config": make_config(), "chunks": 0}, "Thresholds chunks must be at least 1, not 0"),
])
def test_refuses_bad_arguments(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Thresholds(**arguments)
