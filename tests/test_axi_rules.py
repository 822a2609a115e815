"""The checker of AXI finds what is wrong, and lets pass what is right."""

import pytest

from sim.axi_rules import AxiRules

AR = {"id": 0, "addr": 0x1008, "len": 1, "size": 3, "burst": 1}
W = {"strb": 0xFF, "last": 0}


def follow(*transfers):
    rules = AxiRules(8)
    for channel, item in transfers:
        getattr(rules, f"take_{channel}")(item)
    return rules


def test_right_transfers_pass():
    rules = follow(
        ("ar", AR), ("ar", {**AR, "id": 1}), ("r", {"id": 1, "last": 0}),
        ("r", {"id": 0, "last": 0}), ("r", {"id": 0, "last": 1}), ("r", {"id": 1, "last": 1}),
        ("w", W), ("aw", AR), ("w", {**W, "last": 1}), ("b", {"id": 0}))
    rules.drain()
    assert rules.reads == [(0x1008, 2)] * 2
    assert (rules.most_reads, rules.most_writes) == (2, 1)


@pytest.mark.parametrize("message, transfers", [
    ("crosses 4 KiB", [("ar", {**AR, "addr": 0xFF8})]),
    ("crosses 4 KiB", [("aw", {**AR, "addr": 0xFFF})]),
    ("is not incrementing", [("aw", {**AR, "burst": 0})]),
    ("has beats of 4 bytes", [("ar", {**AR, "size": 2})]),
    ("of which nothing was asked", [("r", {"id": 0, "last": 0})]),
    ("rlast is 1 with 1 of 2", [("ar", AR), ("r", {"id": 0, "last": 1})]),
    ("rlast is 0 with 0 of 2", [("ar", AR), *[("r", {"id": 0, "last": 0})] * 2]),
    ("wlast is 1 with 1 of 2", [("aw", AR), ("w", {**W, "last": 1})]),
    ("wlast is 1 with 1 of 2", [("w", {**W, "last": 1}), ("aw", AR)]),
    ("strobe below", [("aw", {**AR, "addr": 0x1009}), ("w", W)]),
    ("nothing is outstanding", [("b", {"id": 0})]),
    ("a response with 1 of 2", [("aw", AR), ("w", W), ("b", {"id": 0})]),
    ("nothing is outstanding", [("aw", AR), ("w", W), ("w", {**W, "last": 1}), ("b", {"id": 1})]),
])
def test_what_is_wrong_is_found(message, transfers):
    *before, last = transfers
    rules = follow(*before)
    with pytest.raises(AssertionError, match=message):
        getattr(rules, f"take_{last[0]}")(last[1])


@pytest.mark.parametrize("transfers", [
    [("ar", AR)], [("aw", AR)], [("w", W)],
    [("aw", AR), ("w", W), ("w", {**W, "last": 1})],
])
def test_what_is_outstanding_is_told(transfers):
    with pytest.raises(AssertionError, match="outstanding|of which nothing was asked"):
        follow(*transfers).drain()
