"""Benches pack payloads as Amaranth does."""

import pytest
from amaranth.hdl import signed
from amaranth.lib import data, enum
from hypothesis import given
from hypothesis import strategies as st

from hw.ports import describe_shape
from sim.payload import pack, unpack


class Kind(enum.Enum, shape=2):
    FULL = 0
    COARSE = 1


LAYOUT = data.StructLayout({
    "kind": Kind,
    "row": data.ArrayLayout(data.StructLayout({"x": signed(5), "y": 3}), 3),
    "last": 1,
})
SHAPE = describe_shape(LAYOUT)

VALUES = st.fixed_dictionaries({
    "kind": st.sampled_from([0, 1]),
    "row": st.lists(st.fixed_dictionaries({"x": st.integers(-16, 15), "y": st.integers(0, 7)}),
                    min_size=3, max_size=3),
    "last": st.integers(0, 1),
})


@given(VALUES)
def test_packs_as_amaranth_does(value):
    bits = pack(SHAPE, value)
    assert bits == LAYOUT.const({**value, "kind": Kind(value["kind"])}).as_bits()
    assert unpack(SHAPE, bits) == value


def test_names_and_whole_bits():
    assert pack(SHAPE, {"kind": "COARSE"}) == 1
    assert pack(SHAPE, 0x1FF) == 0x1FF


@pytest.mark.parametrize("value, error, message", [
    ({"absent": 1}, KeyError, "no field 'absent' among kind, row, last"),
    ({"last": 2}, ValueError, "value must be in 0..1, not 2"),
    ({"row": [{"x": 16}, {}, {}]}, ValueError, "value must be in -16..15, not 16"),
    ({"row": [{}]}, ValueError, "array must have 3 elements, not 1"),
    ({"kind": "OTHER"}, KeyError, "OTHER"),
])
def test_refuses_what_does_not_fit(value, error, message):
    with pytest.raises(error, match=message):
        pack(SHAPE, value)
