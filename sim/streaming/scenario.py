"""The prompt, the device and the conditions that time to first token is measured under.

A prompt of 8,192 tokens on a model of Llama-3.1-8B's sizes: 8 token blocks x 32 layers x 8 KV
heads, 2,048 chunks of 1,024 tokens. The device is of the class of an embedded GPU. The wire carries
4 to 5.5 bits per element, fewer in the upper layers; heads attend to a tenth to all of the earlier
blocks.
"""

from dataclasses import dataclass

import numpy as np

from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import CostModel
from golden.streaming.simulate import Serial
from golden.streaming.traces import Trace, constant, fading, outage, step, walk

__all__ = ["Condition", "Prompt", "CONDITIONS", "TICKS_PER_SECOND"]

TICKS_PER_SECOND = 1_000_000
LATENCY_TICKS = 5_000  # from a request to the first byte
SEGMENT_TICKS = 200_000  # of a trace that varies
BITS = (5.5, 5.0, 4.5, 4.0)  # per quarter of the layers, before the spread of entropy coding


@dataclass(frozen=True)
class Condition:
    """A link and a device over time, in bytes per tick and in shares of full speed."""

    link: Trace
    load: Trace

    def sides(self, costs):
        """Fresh models of both routes for one run."""
        decode = CostModel().decode_ticks
        return (
            Serial(self.link, costs.wire_bytes, latency=LATENCY_TICKS, extra=decode),
            Serial(self.load, costs.compute),
        )


# Name -> condition of a link of so many bytes per tick, and of what others leave of the device.
CONDITIONS = {
    "steady": lambda rate, seed: Condition(constant(rate), constant(1)),
    "varying": lambda rate, seed: Condition(
        walk(rate, seed, step_ticks=SEGMENT_TICKS, spread=0.2),
        walk(0.85, seed + 1000, step_ticks=SEGMENT_TICKS, spread=0.08, lowest=0.3, highest=1.15)),
    "fading": lambda rate, seed: Condition(
        fading(rate, seed, step_ticks=SEGMENT_TICKS // 4), constant(1)),
    "link drops": lambda rate, seed: Condition(
        step(rate, at=TICKS_PER_SECOND, factor=0.3), constant(1)),
    "link outage": lambda rate, seed: Condition(
        outage(rate, at=TICKS_PER_SECOND, length=2 * TICKS_PER_SECOND), constant(1)),
    "device busy": lambda rate, seed: Condition(
        constant(rate), step(1, at=TICKS_PER_SECOND, factor=0.4)),
}


class Prompt:
    """The chunks and what is predicted about them."""

    rule = Rule.PAPER

    def __init__(self, seed=0, blocks=8, layers=32, heads=8):
        self.grid = Grid(blocks=blocks, layers=layers, heads=heads)
        self.model = CostModel()
        rng = np.random.default_rng(seed)
        chunks = np.arange(self.grid.count)
        block = chunks // (layers * heads)
        layer = chunks // heads % layers
        density = np.exp(rng.uniform(np.log(0.1), 0, layers * heads))[chunks % (layers * heads)]
        self.active = density * block
        self.bits = np.asarray(BITS)[layer * len(BITS) // layers]
        self.bits = self.bits * rng.uniform(0.9, 1.1, self.grid.count)

    def costs(self, megabits):
        """``Costs`` predicted for a link of so many Mbit/s."""
        return self.model.costs(self.grid, bits=self.bits, active=self.active,
                                bits_per_second=megabits * 1e6)

    def crossover(self):
        """Mbit/s at which streaming all and computing all take equally long, to the nearest 10."""
        costs = self.costs(1000)
        bits = 8 * int(costs.wire_bytes.sum())
        seconds = int(costs.compute.sum()) / TICKS_PER_SECOND
        return 10 * round(bits / seconds / 1e7)
