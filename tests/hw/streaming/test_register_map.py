from pathlib import Path

import pytest

from hw.bus.register_map import Register
from hw.config import StreamingConfig
from hw.streaming.layouts import CopyError, Decision, Reason, schedule_policy
from hw.streaming.register_map import (
    COUNTERS,
    JOB_FIELDS,
    REGISTERS,
    SIZES,
    address_of,
    to_markdown,
)
from hw.streaming.registers import REGISTER_ADDRESS_BITS
from hw.streaming.reports import CODE_BITS, MASK_BITS, OUTCOME_CODE, Cause, JobEnd, ReportKind

PAGE = Path(__file__).parents[3] / "docs" / "streaming_registers.md"
CONFIG = StreamingConfig(head_dim=64, bus_bytes=16)


def text_of(name):
    return next(register.text for register in REGISTERS if register.name == name)


def test_the_page_is_what_the_generator_prints():
    assert PAGE.read_text() == to_markdown(), \
        "run: python -m hw.streaming.register_map > docs/streaming_registers.md"


def test_names_and_addresses_are_unique_and_fit():
    assert len({register.name for register in REGISTERS}) == len(REGISTERS)
    assert len({register.address for register in REGISTERS}) == len(REGISTERS)
    assert all(register.address < 1 << REGISTER_ADDRESS_BITS for register in REGISTERS)
    assert [r.address for r in REGISTERS] == sorted(r.address for r in REGISTERS)


def test_every_rule_of_the_scheduler_has_a_register_that_it_fits():
    layout = schedule_policy(CONFIG)
    fields = {field.name: field for field in JOB_FIELDS}
    for name, field in layout:
        high = fields[name].high
        high = getattr(CONFIG, high) if isinstance(high, str) else high
        assert high < 1 << field.width, name


def test_initial_values_are_in_range():
    for field in JOB_FIELDS:
        assert isinstance(field.high, int) or hasattr(CONFIG, field.high)
        # What a configuration bounds may be as low as 1.
        high = 1 if isinstance(field.high, str) else field.high
        assert field.low <= field.initial <= high
    assert all(hasattr(CONFIG, name) for name in SIZES)


def test_the_mask_names_every_kind_of_report():
    assert len(Decision) == 18
    assert MASK_BITS == 21
    assert text_of("report_mask").endswith("bit 18 frames, bit 19 copies, bit 20 jobs")
    assert text_of("event_index") == f"Kind of report in {CODE_BITS + 1}:{CODE_BITS}, code in 4:0"


def test_codes_of_one_kind_differ():
    assert len(ReportKind) == 4
    assert max(len(Decision), len(CopyError), len(JobEnd)) <= 1 << CODE_BITS
    # An outcome is told only where something went wrong: never DONE, which is 0.
    assert max(reason.value for reason in Reason) < OUTCOME_CODE + 1


def test_interrupts_are_described_in_their_order():
    text = text_of("interrupt_pending")
    assert [text.find(f"{bit}: ") for bit in range(len(Cause))] == sorted(
        text.find(f"{bit}: ") for bit in range(len(Cause)))
    assert len(Cause) == 6
    assert "5: a chunk is present" in text


def test_address_of():
    assert address_of("id") == 0
    assert address_of("head_dim") == 0x80
    assert address_of("records") == 0xC0
    assert address_of(COUNTERS[0][0]) == 0x180
    with pytest.raises(ValueError, match="register must be one of id, version, .*, not 'iD'"):
        address_of("iD")


def test_bad_registers():
    with pytest.raises(ValueError, match=r"Register.address must be a multiple of 4, not 2 \(x\)"):
        Register("x", 2, "ro", "")
    with pytest.raises(ValueError, match=r"Register.address must be a multiple of 4, not -4 \(x\)"):
        Register("x", -4, "ro", "")
    with pytest.raises(ValueError, match="access must be one of ro, rw, wo, w1c, not 'r'"):
        Register("x", 4, "r", "")
