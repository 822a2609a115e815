"""Messages: bit for bit as the standard lays them out; what is refused; what the device answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.memory.device import Answer, Load, answer_of, meta_after, respond
from golden.memory.image import ALL_BYTES
from golden.memory.messages import (
    DevLoad,
    Drs,
    DrsOp,
    MetaField,
    MetaValue,
    Ndr,
    NdrOp,
    Req,
    ReqOp,
    Rwd,
    RwdOp,
    SnpType,
)
from tests.golden.memory.link import MESSAGES, reqs, rwds

LINE = bytes(range(64))

# Lowest bit of each field in the standard's headers, and its width.
PLACES = {
    Req: {"opcode": (1, 4), "snp_type": (5, 3), "meta_field": (8, 2), "meta_value": (10, 2),
          "tag": (12, 16), "address": (28, 47), "tc": (75, 2), "ld_id": (77, 4)},
    Rwd: {"opcode": (1, 4), "snp_type": (5, 3), "meta_field": (8, 2), "meta_value": (10, 2),
          "tag": (12, 16), "address": (28, 46), "poison": (74, 1), "tc": (75, 2),
          "ld_id": (77, 4)},
    Ndr: {"opcode": (1, 3), "meta_field": (4, 2), "meta_value": (6, 2), "tag": (8, 16),
          "ld_id": (24, 4), "dev_load": (28, 2)},
    Drs: {"opcode": (1, 3), "meta_field": (4, 2), "meta_value": (6, 2), "tag": (8, 16),
          "poison": (24, 1), "ld_id": (25, 4), "dev_load": (29, 2)},
}
WIDTHS = {Req: 87, Rwd: 87, Ndr: 30, Drs: 40}


@pytest.mark.parametrize("kind", MESSAGES)
def test_round_trip_and_places(kind):
    @settings(max_examples=60, deadline=None)
    @given(MESSAGES[kind], st.integers(0, (1 << WIDTHS[kind]) - 1))
    def check(message, noise):
        payload = {name: getattr(message, name)
                   for name in ("data", "byte_enables") if hasattr(message, name)}
        header = message.pack()
        assert header & 1 and header < 1 << WIDTHS[kind] == 1 << kind.BITS
        assert kind.unpack(header, **payload) == message
        used = 1
        for name, (low, bits) in PLACES[kind].items():
            value = getattr(message, name)
            if name == "address":
                value >>= 5 if kind is Req else 6
            assert header >> low & (1 << bits) - 1 == value, name
            used |= (1 << bits) - 1 << low
        # Reserved bits are sent as zero and ignored.
        assert not header & ~used
        assert kind.unpack(header | noise & ~used, **payload) == message
        assert kind.unpack(header & ~1, **payload) is None

    check()


def test_a_header_by_hand():
    request = Req(opcode=ReqOp.MEM_RD, address=0x12345678_9A40, tag=0xBEEF,
                  snp_type=SnpType.SNP_INV, meta_field=MetaField.META0_STATE,
                  meta_value=MetaValue.ANY)
    assert request.pack() == (1 | 1 << 1 | 3 << 5 | 0 << 8 | 2 << 10 | 0xBEEF << 12
                              | 0x12345678_9A40 >> 5 << 28)
    completion = Ndr(opcode=NdrOp.CMP_E, tag=0x1234, dev_load=DevLoad.SEVERE)
    assert completion.pack() == 1 | 2 << 1 | 3 << 4 | 0x1234 << 8 | 3 << 28


@pytest.mark.parametrize("kind, change, error, message", [
    (Req, {"opcode": 16}, ValueError, "opcode must be in 0..15, not 16"),
    (Req, {"tag": 1 << 16}, ValueError, "tag must be in 0..65535"),
    (Req, {"tag": "7"}, TypeError, "tag must be an integer, not '7'"),
    (Req, {"address": 16}, ValueError, "address must be a multiple of 32, not 16"),
    (Req, {"address": 1 << 52}, ValueError, "address must be in"),
    (Rwd, {"address": 32}, ValueError, "address must be a multiple of 64, not 32"),
    (Rwd, {"data": LINE[1:]}, ValueError, "data must be 64 bytes, not 63"),
    (Rwd, {"data": [0] * 64}, TypeError, "data must be bytes"),
    (Rwd, {"byte_enables": 1}, ValueError, "byte_enables must be all ones for opcode 1, not 0x1"),
    (Ndr, {"opcode": 8}, ValueError, "opcode must be in 0..7"),
    (Drs, {"poison": 2}, ValueError, "poison must be in 0..1"),
    (Drs, {"dev_load": 4}, ValueError, "dev_load must be in 0..3"),
])
def test_refused(kind, change, error, message):
    good = {Req: {"opcode": 1, "address": 0, "tag": 0},
            Rwd: {"opcode": 1, "address": 0, "tag": 0, "data": LINE},
            Ndr: {"opcode": 0, "tag": 0}, Drs: {"opcode": 0, "tag": 0, "data": LINE}}[kind]
    kind(**good)
    with pytest.raises(error, match=message):
        kind(**good | change)


def test_unpack_refuses_what_is_no_header():
    with pytest.raises(ValueError, match="word must be in"):
        Ndr.unpack(1 << 30)
    with pytest.raises(TypeError, match="word must be an integer"):
        Ndr.unpack(b"\1")


ANSWERS = {
    ReqOp.MEM_INV: Answer.COMPLETE, ReqOp.MEM_RD: Answer.DATA, ReqOp.MEM_RD_DATA: Answer.DATA,
    ReqOp.MEM_RD_FWD: Answer.SILENT, ReqOp.MEM_WR_FWD: Answer.SILENT,
    ReqOp.MEM_SPEC_RD: Answer.SILENT, ReqOp.MEM_INV_NT: Answer.COMPLETE,
    ReqOp.MEM_CLN_EVCT: Answer.COMPLETE,
}


@pytest.mark.parametrize("opcode", range(16))
def test_answers_to_requests(opcode):
    request = Req(opcode=opcode, address=64, tag=9)
    want = ANSWERS.get(opcode, Answer.VIOLATION)
    missing = {Answer.DATA: Answer.NXM, Answer.COMPLETE: Answer.DROPPED}
    assert answer_of(request) == want
    assert answer_of(request, exists=False) == missing.get(want, want)
    write = Rwd(opcode=opcode, address=64, tag=9, data=LINE)
    assert answer_of(write) == (Answer.COMPLETE if opcode in (1, 2) else Answer.VIOLATION)
    assert answer_of(write, exists=False) == (
        Answer.DROPPED if opcode in (1, 2) else Answer.VIOLATION)


def test_reserved_fields_are_violations_where_they_count():
    for change in ({"snp_type": 4}, {"meta_field": 1}, {"meta_field": 2}):
        assert answer_of(Req(opcode=ReqOp.MEM_RD, address=0, tag=0, **change)) == Answer.VIOLATION
        hint = Req(opcode=ReqOp.MEM_SPEC_RD, address=0, tag=0, **change)
        assert answer_of(hint) == Answer.SILENT
    with pytest.raises(TypeError, match="message must be a Req or an Rwd"):
        answer_of(Ndr(opcode=0, tag=0))


@settings(max_examples=150, deadline=None)
@given(st.one_of(reqs, rwds), st.booleans(), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_responses(message, exists, load, stored, poison):
    answer = answer_of(message, exists)
    got = respond(message, answer, dev_load=load, data=LINE, poison=poison, stored=stored)
    if answer in (Answer.SILENT, Answer.VIOLATION):
        assert got is None
        return
    assert (got.tag, got.ld_id, got.dev_load) == (message.tag, message.ld_id, load)
    if answer == Answer.NXM:
        assert (got.opcode, got.data, got.poison) == (DrsOp.MEM_DATA_NXM, b"\xff" * 64, 1)
        assert not respond(message, answer, poison_nxm=False).poison
    elif answer == Answer.DATA:
        assert (got.opcode, got.data, got.poison) == (DrsOp.MEM_DATA, LINE, poison)
        assert (got.meta_field, got.meta_value) == (MetaField.META0_STATE, stored)
    else:
        assert isinstance(got, Ndr) and got.opcode == NdrOp.CMP
        told = answer == Answer.COMPLETE and isinstance(message, Req) and (
            message.opcode in (ReqOp.MEM_INV, ReqOp.MEM_INV_NT))
        assert (got.meta_field == MetaField.META0_STATE) == told
        assert not told or got.meta_value == stored


@pytest.mark.parametrize("stored", range(4))
def test_meta_bits(stored):
    for value in range(4):
        for opcode in (ReqOp.MEM_RD, ReqOp.MEM_INV, ReqOp.MEM_CLN_EVCT):
            request = Req(opcode=opcode, address=0, tag=0, meta_value=value)
            assert meta_after(request, stored) == stored
            update = Req(opcode=opcode, address=0, tag=0, meta_field=0, meta_value=value)
            assert meta_after(update, stored) == value
        write = Rwd(opcode=RwdOp.MEM_WR, address=0, tag=0, data=LINE, meta_field=0,
                    meta_value=value)
        assert meta_after(write, stored) == value
        read = Req(opcode=ReqOp.MEM_RD_DATA, address=0, tag=0, meta_field=0, meta_value=value)
        assert meta_after(read, stored) == (stored or MetaValue.ANY)


def test_known_opcodes():
    assert [op for op in range(16) if Req(opcode=op, address=0, tag=0).known] == list(ReqOp)
    assert [op for op in range(16) if Rwd(opcode=op, address=0, tag=0, data=LINE).known] == [
        1, 2, 4]
    assert Rwd(opcode=2, address=0, tag=0, data=LINE).byte_enables == ALL_BYTES


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=40))
def test_load_has_hysteresis(waiting):
    load = Load(rises=(4, 8, 12), falls=(2, 5, 10))
    level = 0
    for count in waiting:
        got = load.update(count)
        low = sum(count >= rise for rise in load.rises)
        high = sum(count >= fall for fall in load.falls)
        assert got == min(max(level, low), high)
        level = got


def test_load_refused():
    with pytest.raises(ValueError, match="falls must be below rises"):
        Load(rises=(4, 8, 12), falls=(4, 5, 6))
    with pytest.raises(ValueError, match="rises must be 3 increasing counts"):
        Load(rises=(4, 4, 12), falls=(1, 2, 3))
