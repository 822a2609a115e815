"""Prompts small enough for a test."""

import random
from dataclasses import replace

import numpy as np

from golden.streaming.balance import plan
from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.layout import Format
from golden.streaming.policy import Policy
from hw.config import StreamingConfig
from hw.presets import PRESETS
from sim.streaming.prompt import Prompt

MEMORY_BYTES = 1 << 18
TINY = replace(PRESETS["tiny"].streaming, chunk_tokens=48, chunks=32, table_pages=32)
CONFIGS = {
    "tiny": TINY,
    "wide": StreamingConfig(
        head_dim=64, bus_bytes=64, exponent_block=64, chunk_tokens=48, chunks=64, table_pages=64,
        windows=3, outstanding=8, bursts=8, address_bits=36),
}


def formats_of(config):
    return [fmt for fmt in Format if fmt.name in config.formats]


def make_prompt(config, seed, *, grid=None, tokens=None, rule=None, deadlines=None, **policy):
    """A prompt with random data in random formats, and a good plan for it."""
    rng = random.Random(seed)
    grid = grid or Grid(blocks=3, layers=2, heads=2)
    tokens = tokens or rng.choice([1, 15, 16, 17, 33])
    formats = tuple(rng.choice(formats_of(config)) for _ in range(grid.count))
    values = np.random.default_rng(seed)
    shape = (grid.count, tokens, config.head_dim)
    pages = grid.blocks * -(-tokens // 16)
    table = rng.sample(range(pages + 3), pages)
    # Predictions in ticks of 16 cycles; that they are rough is what the scheduler is for.
    beats = 4 * tokens * config.head_dim // config.bus_bytes
    costs = Costs(
        grid=grid, stream=[max(1, beats // 16 + rng.randint(1, 20)) for _ in range(grid.count)],
        compute=[max(1, beats // 16 + rng.randint(1, 60)) for _ in range(grid.count)])
    schedule = plan(costs, rng.choice(list(Rule)) if rule is None else rule, shares=(0.25, 0.5))
    return Prompt(
        config=config, schedule=schedule, costs=costs, formats=formats, table=tuple(table),
        k=values.normal(size=shape) * 4, v=values.normal(size=shape), deadlines=deadlines,
        policy=Policy(**{"stream_timeout": 4000, "compute_timeout": 4000,
                         "stream_outstanding": 3, "compute_outstanding": 2, **policy}),
        first_id=rng.choice([0, 1000, (1 << 32) - 5]), tick_log2=4)
