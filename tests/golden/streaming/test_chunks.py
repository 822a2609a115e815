"""Chunk ids and dependencies against their definition."""

import itertools

import pytest

from golden.streaming.chunks import CHUNKS_MAX, Grid, Rule

SIZES = [(1, 1, 1), (3, 1, 2), (1, 4, 2), (3, 3, 2), (4, 2, 1)]


@pytest.mark.parametrize("sizes", SIZES)
def test_ids_are_dense_and_places_are_their_inverse(sizes):
    grid = Grid(blocks=sizes[0], layers=sizes[1], heads=sizes[2])
    places = list(itertools.product(*map(range, sizes)))
    assert [grid.chunk(*place) for place in places] == list(range(grid.count))
    assert [grid.place(chunk) for chunk in range(grid.count)] == places


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("rule", Rule)
def test_dependencies(sizes, rule):
    grid = Grid(blocks=sizes[0], layers=sizes[1], heads=sizes[2])
    for chunk in range(grid.count):
        block, layer, head = grid.place(chunk)
        earlier = range(block) if rule == Rule.STRICT else range(max(0, block - 1), block)
        if layer == grid.layers - 1:
            earlier = ()
        heads = range(grid.heads) if rule == Rule.STRICT else (head,)
        present = [grid.chunk(other, layer, head) for other in earlier]
        computed = [grid.chunk(block, layer - 1, other) for other in heads] if layer else []
        assert sorted(grid.needs_present(chunk, rule)) == present
        assert sorted(grid.needs_computed(chunk, rule)) == computed


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("rule", Rule)
def test_helps_are_the_inverse_of_needs(sizes, rule):
    edges = Grid(blocks=sizes[0], layers=sizes[1], heads=sizes[2]).edges[rule]
    for needs, helps in (
        (edges.needs_present, edges.helps_present),
        (edges.needs_computed, edges.helps_computed),
    ):
        pairs = {(chunk, other) for chunk, row in enumerate(needs) for other in row}
        assert pairs == {(other, chunk) for chunk, row in enumerate(helps) for other in row}


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match=r"Grid\.layers must be in 1\.\.65536, not 0"):
        Grid(blocks=1, layers=0, heads=1)
    with pytest.raises(ValueError, match="at most 65536 chunks, not 300 \\* 32 \\* 8"):
        Grid(blocks=300, layers=32, heads=8)
    assert Grid(blocks=256, layers=32, heads=8).count == CHUNKS_MAX
