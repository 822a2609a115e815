from pathlib import Path

import pytest

from hw.attention.layouts import Error, context_entry
from hw.attention.register_map import (
    COUNTERS,
    ENTRY_FIELDS,
    REGISTERS,
    address_of,
    to_markdown,
)
from hw.attention.registers import REGISTER_ADDRESS_BITS
from hw.bus.register_map import Register
from tests.hw.attention.rows import make_config

PAGE = Path(__file__).parents[3] / "docs" / "registers.md"


def test_the_page_is_what_the_generator_prints():
    assert PAGE.read_text() == to_markdown(), \
        "run: python -m hw.attention.register_map > docs/registers.md"


def test_names_and_addresses_are_unique_and_fit():
    assert len({register.name for register in REGISTERS}) == len(REGISTERS)
    assert len({register.address for register in REGISTERS}) == len(REGISTERS)
    assert all(register.address < 1 << REGISTER_ADDRESS_BITS for register in REGISTERS)


def test_every_field_of_an_entry_can_be_staged():
    layout = context_entry(make_config(address_bits=64))
    assert [name for name, _ in layout] != []
    assert {name for name, _ in ENTRY_FIELDS} == {name for name, _ in layout}
    assert all(is_wide == (layout[name].width > 32) for name, is_wide in ENTRY_FIELDS)


def test_every_error_has_a_counter():
    names = {name for name, _ in COUNTERS}
    assert {name for name in names if name.startswith("errors_")} == {
        f"errors_{error.name.lower()}" for error in Error if error != Error.NONE}


def test_address_of():
    assert address_of("id") == 0
    assert address_of("entry_length") == 0x80
    assert address_of("cycles_busy") == 0x180
    with pytest.raises(ValueError, match="register must be one of id, version, .*, not 'iD'"):
        address_of("iD")


def test_bad_registers():
    with pytest.raises(ValueError, match=r"Register.address must be a multiple of 4, not 2 \(x\)"):
        Register("x", 2, "ro", "")
    with pytest.raises(ValueError, match="access must be one of ro, rw, wo, w1c, not 'r'"):
        Register("x", 4, "r", "")
