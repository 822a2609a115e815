"""Memory image, and the checks of what reads return."""

import numpy as np
import pytest

from golden.memory.image import ALL_BYTES, Image, Read, agrees, byte_mask, pieces
from golden.memory.ordering import Concurrent, InOrder


def line(value):
    return np.full(64, value, np.uint8)


def test_fresh_lines_read_zero_in_gibibytes_of_space():
    image = Image(1 << 40, meta=2)
    seen = image.read((1 << 40) - 1)
    assert not seen.data.any() and not seen.poison and seen.meta == 2
    assert len(image) == 0


def test_random_writes_against_plain_bytes():
    seed = 11
    random = np.random.default_rng(seed)
    image, plain = Image(16), np.zeros((16, 64), np.uint8)
    for _ in range(2000):
        where, data = int(random.integers(16)), random.integers(0, 256, 64)
        enables = int(random.integers(0, 1 << 64, dtype=np.uint64))
        for byte in range(64):
            if enables >> byte & 1:
                plain[where, byte] = data[byte]
        image.write(where, data, enables)
        where = int(random.integers(16))
        assert (image.read(where).data == plain[where]).all(), f"seed {seed}"


def test_what_was_read_does_not_change_later():
    image = Image(1)
    image.write(0, line(1))
    seen = image.read(0)
    image.write(0, line(2))
    assert (seen.data == 1).all()


def test_poison():
    image = Image(4)
    image.write(0, line(1), poison=True)
    assert image.read(0).poison
    image.write(0, line(2), enables=ALL_BYTES >> 1)  # one bad byte remains
    assert image.read(0).poison
    image.write(0, line(3))
    assert not image.read(0).poison
    image.write(0, line(4), enables=1, poison=True)  # one bad byte is enough
    assert image.read(0).poison
    image.write(1, line(5), enables=0, poison=True)  # nothing written
    assert not image.read(1).poison and not image.read(1).data.any()
    image.spoil(2)
    assert image.read(2).poison
    image.write(2, line(6), enables=0)
    assert image.read(2).poison


def test_meta_values():
    """Told as they were before; changed by reads and writes that carry one, and only by those."""
    image = Image(2)
    assert image.write(0, line(1), meta=3) == 0
    assert image.write(0, line(2)) == 3
    assert image.read(0, meta=2).meta == 3
    assert image.read(0).meta == 2
    assert image.write(0, line(9), enables=0, meta=1) == 2
    seen = image.read(0)
    assert seen.meta == 1 and (seen.data == 2).all()
    image.read(1, meta=2)
    assert image.read(1).meta == 2 and not image.read(1).data.any()


def test_pieces():
    data = np.arange(150, dtype=np.uint8)
    image = Image(8)
    parts = list(pieces(64 + 60, data))
    assert [part[0] for part in parts] == [1, 2, 3, 4]
    assert [part[2] for part in parts] == [0xF << 60, ALL_BYTES, ALL_BYTES, (1 << 18) - 1]
    for where, content, enables in parts:
        image.write(where, content, enables)
    held = np.concatenate([image.read(where).data for where in range(8)])
    assert (held[124:274] == data).all() and not held[:124].any() and not held[274:].any()
    assert list(pieces(5, b"")) == []


def test_agreement():
    expected = Read(line(1), True, 2)
    assert agrees(Read(line(7), True, 2), expected)
    assert not agrees(Read(line(1), False, 2), expected)
    assert not agrees(Read(line(1), True, 3), expected)
    assert not agrees(Read(line(7), False, 2), Read(line(1), False, 2))


def test_wrong_arguments():
    image = Image(4)
    with pytest.raises(ValueError, match="line must be in 0..3, not 4"):
        image.read(4)
    with pytest.raises(ValueError, match="meta must be in 0..3, not 4"):
        image.read(0, meta=4)
    with pytest.raises(ValueError, match="data must have shape"):
        image.write(0, line(1)[:63])
    with pytest.raises(ValueError, match="enables must be in"):
        byte_mask(1 << 64)
    with pytest.raises(TypeError, match="lines must be an integer, not 4.0"):
        Image(4.0)
    with pytest.raises(TypeError, match="image must be an Image"):
        Concurrent(None)


def test_in_order():
    port = InOrder(Image(8))
    port.write("w", 3, line(1))
    port.read("a", 3)
    port.write("x", 3, line(2))
    port.read("b", 3)
    with pytest.raises(ValueError, match="tag must not be in use, but 'a' is"):
        port.read("a", 5)
    assert port.answer("b", Read(line(2), False, 0))
    assert port.answer("a", Read(line(1), False, 0))  # out of order, but settled at acceptance
    assert not port.answer("a", Read(line(1), False, 0))
    assert port.answer("w")
    assert not port.answer("x", Read(line(2), False, 0))
    assert not port.waiting
    port.read("c", 3)
    assert not port.answer("c", Read(line(1), False, 0))


def seen(value, poison=False):
    return Read(line(value), poison, 0)


def test_concurrent_write_and_read():
    ports = Concurrent(Image(8))
    write = ports.write(10, 3, line(5))
    early, late = ports.read(11, 3), ports.read(11, 3)
    assert ports.answer(12, early, seen(0))
    assert ports.answer(20, write)
    assert ports.answer(21, late, seen(5))
    after = ports.read(22, 3)
    assert not ports.answer(23, after, seen(0))  # the write was complete before
    mixed = ports.read(24, 3)
    assert not ports.answer(24, mixed, Read(np.arange(64, dtype=np.uint8), False, 0))
    assert ports.waiting == 0
    assert not ports.answer(25, mixed, seen(5))


def test_concurrent_poison():
    ports = Concurrent(Image(8))
    bad = ports.write(1, 0, line(1), poison=True)
    assert ports.answer(2, bad)
    assert not ports.answer(4, ports.read(3, 0), seen(1))
    assert ports.answer(6, ports.read(5, 0), seen(9, poison=True))
    clean = ports.write(7, 0, line(2))
    overlap = ports.read(8, 0), ports.read(8, 0)
    assert ports.answer(9, overlap[0], seen(0, poison=True))
    assert ports.answer(10, clean)
    assert ports.answer(11, overlap[1], seen(2))
    assert not ports.answer(13, ports.read(12, 0), seen(2, poison=True))
    assert ports.answer(15, ports.read(14, 0), seen(2))


@pytest.mark.parametrize("fault", [None, "stale", "lost", "poison"])
def test_concurrent_on_a_random_memory(fault):
    """A memory that takes effect somewhere between issue and answer passes; a faulty one does not.

    Faults: a read that returns what the line was 60 steps ago, a write without effect, a poison
    flag that is dropped.
    """
    seed = 12
    random = np.random.default_rng(seed)
    ports, memory = Concurrent(Image(4)), Image(4)
    flying, old, wrong = [], [], 0
    for now in range(4000):
        old.append([memory.read(where) for where in range(4)])
        if len(flying) < 8:
            where = int(random.integers(4))
            if random.random() < 0.5:
                flying.append([ports.read(now, where), "read", where, None])
            else:
                data = random.integers(0, 256, 64)
                whole = random.random() < 0.5
                enables = ALL_BYTES if whole else int(random.integers(1 << 62))
                poison = bool(random.random() < 0.1)
                ticket = ports.write(now, where, data, enables, poison)
                flying.append([ticket, "write", where, (data, enables, poison)])
        index = int(random.integers(len(flying)))
        ticket, kind, where, payload = flying[index]
        if kind == "write":
            if not (fault == "lost" and random.random() < 0.05):
                memory.write(where, *payload)
            flying[index] = [ticket, "done", where, None]
        elif kind == "read":
            result = memory.read(where)
            if fault == "stale" and random.random() < 0.05 and now > 60:
                result = old[now - 60][where]
            if fault == "poison":
                result = result._replace(poison=False)
            flying[index] = [ticket, "done", where, result]
        else:
            wrong += not ports.answer(now, ticket, payload)
            flying.pop(index)
    assert (wrong > 0) == (fault is not None), f"seed {seed}: {wrong} wrong"
