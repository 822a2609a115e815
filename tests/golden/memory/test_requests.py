"""Request streams: what each is made of, and that seeds settle them."""

from dataclasses import fields, replace

import numpy as np
import pytest

from golden.memory.image import ALL_BYTES, Image
from golden.memory.place import place_of
from golden.memory.requests import (
    Operation,
    Policy,
    Region,
    Requests,
    assign,
    attention,
    conflicts,
    hot,
    mixture,
    sequential,
    strided,
    uniform,
)
from hw.memory.timings import DDR5_4800


def same(one, other):
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for field in fields(Requests)
    )


@pytest.mark.parametrize("make", [
    lambda seed: uniform(500, 1000, 0.5, seed), lambda seed: mixture(500, 20, seed),
    lambda seed: hot(500, 1000, 10, write_share=0.5, seed=seed),
    lambda seed: attention(3, 100, 20, seed=seed),
    lambda seed: sequential(500, writes=True, seed=seed),
])
def test_seeds(make):
    assert same(make(3), make(3))
    assert not same(make(3), make(4))


def test_lines():
    assert sequential(4, 7).line.tolist() == [7, 8, 9, 10]
    assert strided(3, 100, writes=True).line.tolist() == [0, 100, 200]
    assert strided(3, 100, writes=True).writes.all()
    assert not sequential(4).writes.any() and not sequential(4).data.any()
    random = uniform(4000, 100, 0.25)
    assert set(random.line.tolist()) == set(range(100))
    assert random.writes.mean() == pytest.approx(0.25, abs=0.03)
    assert (random.enables == np.where(random.writes, np.uint64(ALL_BYTES), np.uint64(0))).all()
    assert len(sequential(0)) == 0


def test_mixture_has_every_kind():
    requests = mixture(5000, 16, seed=1)
    partial = requests.writes & (requests.enables != np.uint64(ALL_BYTES))
    assert partial.sum() / requests.writes.sum() == pytest.approx(0.3, abs=0.03)
    assert (requests.writes & (requests.enables == 0)).any()
    assert requests.poison[requests.writes].mean() == pytest.approx(0.02, abs=0.01)
    assert not requests.poison[~requests.writes].any()
    assert set(requests.meta.tolist()) == {-1, 0, 1, 2, 3}
    image = Image(16)
    answers = requests.apply(image)
    assert sum(answer is None for answer in answers) == requests.writes.sum()
    seen = [answer for answer in answers if answer is not None]
    assert any(answer.poison for answer in seen) and not all(answer.poison for answer in seen)


def test_hot():
    requests = hot(4000, 1000, 10, hot_share=0.9)
    assert (requests.line >= 990).mean() == pytest.approx(0.901, abs=0.02)


def test_conflicts():
    requests = conflicts(100, DDR5_4800.organisation)
    place = place_of(requests.line, DDR5_4800.organisation)
    assert not place.group.any() and not place.bank.any()
    assert (np.diff(place.row) != 0).all()


def test_attention():
    """All K rows of each query in order, its V rows among the K rows of the next one."""
    queries, tokens, selected = 3, 50, 10
    requests = attention(queries, tokens, selected, row_lines=2)
    assert len(requests) == queries * (tokens + selected) * 2
    is_k = requests.region == Region.K
    assert (requests.line[is_k] == np.tile(np.arange(tokens * 2), queries)).all()
    rows = requests.line[~is_k].reshape(queries, selected, 2)
    assert (rows[..., 1] == rows[..., 0] + 1).all() and (rows[..., 0] % 2 == 0).all()
    assert (np.diff(rows[..., 0], axis=1) > 0).all()
    assert is_k[:tokens * 2].all() and not is_k[-selected * 2:].any()
    middle = is_k[tokens * 2:-selected * 2].reshape(queries - 1, -1, 12)
    assert (middle.sum(axis=-1) == 10).all()


def test_policies():
    requests = attention(2, 64, 16, row_lines=2)
    near, far, size = 0, 1 << 20, 128
    is_k = requests.region == Region.K
    for policy in Policy:
        placed = assign(requests, policy, near, far, size, page_lines=16)
        in_far = placed.line >= far
        expected = {Policy.SEMANTIC: ~is_k, Policy.SWAPPED: is_k,
                    Policy.FAR: np.ones(len(is_k), bool)}
        if policy == Policy.INTERLEAVED:
            assert in_far[is_k].mean() == 0.5
        else:
            assert (in_far == expected[policy]).all()
        # No two lines share an address, and each line keeps its one.
        lines = set(zip(requests.region.tolist(), requests.line.tolist(), strict=True))
        pairs = set(zip(requests.region.tolist(), requests.line.tolist(), placed.line.tolist(),
                        strict=True))
        assert len(lines) == len(pairs) == len(set(placed.line.tolist()))
    with pytest.raises(ValueError, match="region_lines must be above 127, not 127"):
        assign(requests, Policy.FAR, near, far, 127)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="write_share must be in 0..1, not 1.5"):
        uniform(10, 10, 1.5)
    with pytest.raises(ValueError, match="selected must be in 0..8, not 9"):
        attention(1, 8, 9)
    with pytest.raises(ValueError, match="poison must be a bool array"):
        replace(sequential(3), poison=np.zeros(2, bool))
    with pytest.raises(ValueError, match="operation must be in 0..1"):
        replace(sequential(3), operation=np.array([0, 1, 2]))


def test_joined():
    requests = sequential(3) + sequential(2, 10, writes=True)
    assert requests.line.tolist() == [0, 1, 2, 10, 11]
    assert requests.operation.tolist() == [Operation.READ] * 3 + [Operation.WRITE] * 2
    assert requests.take([4, 0]).line.tolist() == [11, 0]
