"""The cost model against figures worked out by hand."""

import numpy as np
import pytest

from golden.streaming.chunks import Grid
from golden.streaming.costs import CostModel, Costs
from golden.streaming.energy import Powers

GRID = Grid(blocks=3, layers=4, heads=8)


def test_a_chunk_on_the_wire():
    """1,024 tokens of K and V at d = 128: 160 KiB at 5 bits, 2.05 ms at 640 Mbit/s."""
    model = CostModel(decode_ticks=0)
    assert model.wire_bytes(16) == 512 * 1024
    assert model.wire_bytes(5) == 160 * 1024
    assert model.stream_ticks(model.wire_bytes(5), 640e6) == 2048
    assert CostModel(decode_ticks=7).stream_ticks(163840, 640e6) == 2055


def test_computing_grows_with_active_blocks_and_the_last_layer_is_a_projection():
    model = CostModel(dense_flops=1e13, attention_flops=5e12)
    active = np.arange(GRID.count) // (GRID.layers * GRID.heads)
    ticks = model.compute_ticks(GRID, active).reshape(3, 4, 8)
    weights = 2 * 4096 * (4096 + 1024) + 3 * 4096 * 14336
    dense = 2 * 1024 * weights / 8 / 1e13
    block = 4 * 4 * 1024 * 1024 * 128 / 5e12
    for earlier in range(3):
        assert abs(ticks[earlier, :3] - 1e6 * (dense + block * (earlier + 0.5))).max() <= 1
    assert (ticks[:, 3] == np.ceil(1e6 * 2 * 1024 * 4096 * 256 / 1e13)).all()


def test_costs_of_a_grid():
    costs = CostModel().costs(GRID, bits=5, active=0, bits_per_second=640e6)
    assert (costs.stream == 2050).all()
    assert (costs.wire_bytes == 160 * 1024).all()
    assert costs.ticks == (costs.stream.tolist(), costs.compute.tolist())


def test_times_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="tick_seconds must be long enough for 24-bit times"):
        CostModel().costs(GRID, bits=16, active=0, bits_per_second=1e5)
    with pytest.raises(ValueError, match=r"Costs\.stream must be in 1\.\.16777215"):
        Costs(grid=GRID, stream=np.zeros(96, int), compute=np.ones(96, int))
    with pytest.raises(ValueError, match=r"CostModel\.dense_flops must be positive, not 0"):
        CostModel(dense_flops=0)


def test_energy():
    powers = Powers(radio=2, compute=20, idle=1)
    assert powers.joules(stream_seconds=3, compute_seconds=4, total_seconds=5) == 6 + 80 + 5
    with pytest.raises(ValueError, match=r"Powers\.idle must be 0 or more, not -1"):
        Powers(idle=-1)
