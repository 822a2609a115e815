import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.config import MemoryConfig

RANGES = {"tag_bits": (1, 16), "ports": (0, 8), "cxl_requests": (2, 64), "cxl_data": (2, 64),
          "windows": (1, 32)}
POWERS = ("cxl_requests", "cxl_data")


@given(name=st.sampled_from(sorted(RANGES)), value=st.integers(-100, 200))
def test_a_field_is_taken_in_its_range_and_named_outside(name, value):
    low, high = RANGES[name]
    if not low <= value <= high:
        text = f"MemoryConfig.{name} must be in {low}..{high}, not {value}"
    elif name in POWERS and value not in (2, 4, 8, 16, 32, 64):
        text = f"MemoryConfig.{name} must be a power of two, not {value}"
    else:
        assert getattr(MemoryConfig(**{name: value}), name) == value
        return
    with pytest.raises(ValueError) as error:
        MemoryConfig(**{name: value})
    assert str(error.value) == text


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("value", [True, 4.0, "4", None])
def test_a_field_is_an_integer(name, value):
    with pytest.raises(TypeError) as error:
        MemoryConfig(**{name: value})
    assert str(error.value) == f"MemoryConfig.{name} must be an integer, not {value!r}"


@pytest.mark.parametrize("ports, bits", [(0, 1), (1, 2), (2, 2), (3, 3), (6, 3), (7, 4), (8, 4)])
def test_sources_are_the_ports_the_endpoint_and_migration(ports, bits):
    assert MemoryConfig(ports=ports).source_bits == bits


def test_lines_of_a_host_address():
    assert MemoryConfig().host_line_bits == 46
