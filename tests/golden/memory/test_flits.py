"""Flits: CRC, slot layouts, packing rules, credits."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.memory.crc import BODY_BYTES, crc16, fits, gray, seal, ungray
from golden.memory.flits import LIMITS, MOST_ALL_DATA, Fault, FlitError, Packer, Unpacker
from golden.memory.messages import Drs, Ndr, Req, Rwd, RwdOp
from golden.memory.slots import (
    Control,
    Direction,
    Header,
    control_flit,
    control_of,
    credit_code,
    credits_of,
    formats,
    join,
    split,
)
from tests.golden.memory.link import MESSAGES, random_message

LINE = bytes(range(64))

# Two of the sixteen masks by which the standard gives its CRC: bit j of mask i says whether bit j
# of the flit counts in bit i of the CRC.
MASKS = {
    15: "EF9CD9F9C4BBB83A3E84A97CD7AEDA13FAEB01B85B204A4CAE1E79D977535D21"
        "DC7FDD6A38F03E77F5F52A2C636DB05C3978EA30CD50E0D99B0693D4746B2431",
    5: "AADE26AEAB77E9208BADD55C40D6AECE0C0C5FFCC09AF38CFC28AA16E3F198CB"
       "E1F38261C1C8AADC143B66253B6CDDF994C462E9CB67AE33CD6CC0C246011A96",
}


def flit_bit(bit):
    return (1 << bit).to_bytes(BODY_BYTES, "little")


def test_crc_is_the_standards():
    columns = [crc16(flit_bit(bit)) for bit in range(512)]
    for bit, mask in MASKS.items():
        want = int(mask, 16)
        assert sum((column >> bit & 1) << j for j, column in enumerate(columns)) == want
    assert crc16(bytes(64)) == 0


def test_any_three_flips_are_seen_sequence_number_included():
    """Distance 4 over 537 bits: flit, CRC, Gray code of the sequence number, and the bit above."""
    zero = crc16(bytes(64), 0)
    syndromes = [crc16(flit_bit(bit)) for bit in range(512)] + [1 << bit for bit in range(16)]
    syndromes += [crc16(bytes(64), ungray(1 << bit)) ^ zero for bit in range(8)] + [zero]
    seen = set(syndromes)
    assert len(seen) == len(syndromes) == 537 and 0 not in seen
    assert not any(one ^ other in seen for one, other in combinations(syndromes, 2))


def test_sequence_numbers_tell_flits_apart():
    body = bytes(range(64))
    crcs = {crc16(body, number) for number in range(256)}
    assert len(crcs) == 256 and crc16(body) not in crcs
    assert all(ungray(gray(number)) == number for number in range(256))
    assert all((gray(n) ^ gray(n + 1)).bit_count() == 1 for n in range(255))
    flit = seal(body, 7)
    assert len(flit) == 66 and fits(flit, 7) and not fits(flit, 8) and not fits(flit)
    with pytest.raises(ValueError, match="body must be 64 bytes, not 63"):
        crc16(body[1:])


def test_header_layout():
    header = Header(ak=1, be=1, sz=1, slot0=5, slot1=4, slot2=3, slot3=6, rsp_crd=9, req_crd=10,
                    data_crd=15)
    assert header.pack() == (1 << 2 | 1 << 3 | 1 << 4 | 5 << 5 | 4 << 8 | 3 << 11 | 6 << 14
                             | 9 << 20 | 10 << 24 | 15 << 28)
    assert Header.unpack(header.pack() | 2 | 7 << 17) == header
    with pytest.raises(ValueError, match="slot1 must be in 0..7"):
        Header(slot1=8)


def test_two_completions_in_a_slot():
    """The first one's DevLoad comes after the second one; bytes as in the standard's figure."""
    first = Ndr(opcode=1, tag=0xABCD, meta_field=0, meta_value=2, ld_id=5, dev_load=3)
    second = Ndr(opcode=2, tag=0x1234, meta_field=3, meta_value=1, ld_id=9, dev_load=2)
    slot = formats(Direction.S2M, False)[5].pack([first, second])
    data = slot.to_bytes(16, "little")
    assert data[0] == 1 | 1 << 1 | 0 << 4 | 2 << 6
    assert data[1:3] == bytes([0xCD, 0xAB])
    assert data[3] == 5 | 1 << 4 | 2 << 5
    assert data[4] == 3 | 1 << 2 | 0x4 << 4
    assert data[5] == 0x23
    assert data[6] == 0x1 | 9 << 4
    assert data[7] == 2 | 3 << 2
    assert not any(data[8:])
    assert formats(Direction.S2M, False)[5].unpack(slot) == [first.pack(), second.pack()]


# Slot formats for CXL.mem: bits in use, as the standard's tables list them.
LENGTHS = {
    (Direction.M2S, True): {4: 87, 5: 87}, (Direction.M2S, False): {4: 87, 5: 87},
    (Direction.S2M, True): {3: 70, 4: 60, 5: 80}, (Direction.S2M, False): {4: 100, 5: 60, 6: 120},
}


@pytest.mark.parametrize("place", LENGTHS)
def test_slot_formats(place):
    rng = random.Random(0)
    assert set(formats(*place)) == set(LENGTHS[place])
    for code, entry in formats(*place).items():
        assert sum(kind.BITS for kind in entry.kinds) == LENGTHS[place][code]
        for _ in range(20):
            messages = [random_message(rng, kind, 1) if rng.random() < 0.7 else None
                        for kind in entry.kinds]
            slot = entry.pack(messages)
            assert slot < 1 << LENGTHS[place][code]
            assert entry.unpack(slot) == [m.pack() if m else 0 for m in messages]


def test_credit_codes():
    assert [credits_of(8 | code) for code in range(8)] == [0, 1, 2, 4, 8, 16, 32, 64]
    assert [credits_of(code) for code in range(8)] == [0] * 8
    for count in range(200):
        given = credits_of(credit_code(count))
        assert given <= count < max(1, 2 * given) or given == 64


@pytest.mark.parametrize("control", Control)
def test_control_flits(control):
    body = control_flit(control, 0x123456789ABCDEF0)
    assert body[:4] == b"\1\0\0\0" and body[4] == control and not any(body[16:])
    assert control_of(body) == (control, 0x123456789ABCDEF0)
    for bit in range(512):
        other = control_of(bytes(a ^ b for a, b in zip(body, flit_bit(bit), strict=True)))
        if bit in range(64, 128):  # the payload
            assert other == (control, 0x123456789ABCDEF0 ^ 1 << bit - 64)
        elif other:
            # Another control flit, or what LLCRD alone may carry: Ak and credits.
            assert bit in range(32, 40) or (control == Control.LLCRD and bit in (2, *range(20, 32)))
    assert control_of(join(Header(), 0, 0, 0, 0)) is None


def connect(direction, buffers=64, multi_header=False):
    """A packer with credits for all its queues, and the unpacker that gave them."""
    kinds = (Req, Rwd) if direction == Direction.M2S else (Ndr, Drs)
    packer = Packer(direction, multi_header=multi_header)
    unpacker = Unpacker(direction, dict.fromkeys(kinds, buffers))
    while any(unpacker.returns.values()):
        packer.gain(Header(**unpacker.take_returns()))
    return packer, unpacker


@pytest.mark.parametrize("multi_header", [False, True])
@pytest.mark.parametrize("direction", Direction)
def test_messages_come_out_as_they_went_in(direction, multi_header):
    kinds = (Req, Rwd) if direction == Direction.M2S else (Ndr, Drs)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.one_of(*(MESSAGES[kind] for kind in kinds)), max_size=20),
           st.randoms(use_true_random=False))
    def check(messages, rng):
        packer, unpacker = connect(direction, multi_header=multi_header)
        waiting, arrived, row = list(messages), [], 0
        while waiting or packer.ready:
            while waiting and rng.random() < 0.5:
                packer.push(waiting.pop(0))
            if not packer.ready:
                continue
            all_data = packer.all_data
            assert unpacker.all_data == all_data
            row = row + 1 if all_data else 0
            assert row <= MOST_ALL_DATA
            got = unpacker.feed(packer.flit())
            arrived += got
        for kind in kinds:
            assert [m for m in arrived if type(m) is kind] == [
                m for m in messages if type(m) is kind]

    check()


@pytest.mark.parametrize("direction", Direction)
def test_limits_per_flit_and_tight_packing(direction):
    rng = random.Random(direction)
    kinds = (Req, Rwd) if direction == Direction.M2S else (Ndr, Drs)
    for seed in range(40):
        packer, _ = connect(direction, multi_header=seed % 2 == 1)
        for kind in kinds:
            for tag in range(rng.randrange(8)):
                packer.push(random_message(rng, kind, tag))
        while packer.ready:
            if packer.all_data:
                packer.flit()
                continue
            due = len(packer._data)
            header, words = split(packer.flit())
            # Rolled-over chunks take the first slots, so message slots follow.
            assert all(header.slots[slot] == 0 for slot in range(1, due + 1))
            counts = dict.fromkeys(kinds, 0)
            headers = 0
            for slot, (code, word) in enumerate(zip(header.slots, words, strict=True)):
                if slot and code == 0:
                    continue
                entry = formats(direction, slot == 0)[code]
                valid = [head & 1 for head in entry.unpack(word)]
                for kind in kinds:
                    mine = [v for k, v in zip(entry.kinds, valid, strict=True) if k is kind]
                    assert mine == sorted(mine, reverse=True)
                    counts[kind] += sum(mine)
                headers += any(v for k, v in zip(entry.kinds, valid, strict=True)
                               if k in (Rwd, Drs))
            assert headers <= 1
            assert all(count <= LIMITS[kind] for kind, count in counts.items())


def flits_for(direction, kind, count, multi_header=False):
    packer, _ = connect(direction, multi_header=multi_header)
    for tag in range(count):
        packer.push(random_message(random.Random(tag), kind, tag)
                    if kind is not Rwd else Rwd(opcode=1, address=0, tag=tag, data=LINE))
    flits = 0
    while packer.ready:
        packer.flit()
        flits += 1
    return flits


def test_efficiency():
    """What docs/memory_link.md says: flits for a stream of one kind of message."""
    assert flits_for(Direction.M2S, Req, 40) == 20
    assert flits_for(Direction.S2M, Ndr, 40) == 20
    assert flits_for(Direction.S2M, Drs, 40) == 50
    assert flits_for(Direction.M2S, Rwd, 40) == 50
    assert flits_for(Direction.S2M, Drs, 40, multi_header=True) == 45


def test_requests_and_writes_take_turns():
    packer, unpacker = connect(Direction.M2S)
    for tag in range(20):
        packer.push(Req(opcode=1, address=0, tag=tag))
        packer.push(Rwd(opcode=1, address=0, tag=tag, data=LINE))
    order = []
    for _ in range(20):
        order += [type(m) for m in unpacker.feed(packer.flit())]
    # A write arrives a flit or two after its header.
    assert abs(order.count(Req) - order.count(Rwd)) <= 2


def test_no_credit_no_message():
    packer = Packer(Direction.M2S)
    packer.push(Req(opcode=1, address=0, tag=0))
    assert not packer.ready
    packer.gain(Header(req_crd=2))  # for CXL.cache
    assert not packer.ready
    packer.gain(Header(req_crd=9))
    assert packer.ready
    packer.push(Req(opcode=1, address=0, tag=1))
    packer.flit()
    assert packer.credits[Req] == 0 and not packer.ready
    for _ in range(40):
        packer.gain(Header(req_crd=15))
    assert packer.credits[Req] == 1023
    with pytest.raises(TypeError, match="message must travel M2S"):
        packer.push(Ndr(opcode=0, tag=0))


REQ = Req(opcode=1, address=0, tag=0).pack()
RWD = Rwd(opcode=1, address=0, tag=0, data=LINE).pack()
PARTIAL = Rwd(opcode=RwdOp.MEM_WR_PTL, address=0, tag=0, data=LINE).pack()
NDR = Ndr(opcode=0, tag=0).pack()
DRS = Drs(opcode=0, tag=0, data=LINE).pack()


@pytest.mark.parametrize("direction, header, slots, fault", [
    (Direction.M2S, {"slot0": 0}, (0, 0, 0, 0), Fault.FORMAT),
    (Direction.M2S, {"slot0": 5, "slot1": 1}, (0, 0, 0, 0), Fault.FORMAT),
    (Direction.S2M, {"slot0": 2}, (0, 0, 0, 0), Fault.FORMAT),
    (Direction.M2S, {"slot0": 5, "slot1": 0}, (0, 0, 0, 0), Fault.ROLLOVER),
    (Direction.M2S, {"sz": 1, "slot0": 4, "slot1": 4}, (RWD, REQ, 0, 0), Fault.ROLLOVER),
    (Direction.M2S, {"slot0": 5, "slot1": 4, "slot2": 4}, (REQ, REQ, REQ, 0), Fault.LIMIT),
    (Direction.S2M, {"sz": 1, "slot0": 4, "slot1": 5, "slot2": 5},
     (NDR | NDR << 28, NDR, 0, 0), Fault.LIMIT),
    (Direction.M2S, {"slot0": 4}, (RWD, 0, 0, 0), Fault.SIZE),
    (Direction.M2S, {"sz": 1, "be": 1, "slot0": 4}, (RWD, 0, 0, 0), Fault.BYTE_ENABLES),
    (Direction.S2M, {"sz": 1, "be": 1, "slot0": 3}, (DRS, 0, 0, 0), Fault.BYTE_ENABLES),
])
def test_faults(direction, header, slots, fault):
    _, unpacker = connect(direction)
    with pytest.raises(FlitError) as caught:
        unpacker.feed(join(Header(**header), *slots))
    assert caught.value.fault == fault


def test_a_message_without_credit_is_refused():
    unpacker = Unpacker(Direction.M2S, {Req: 1, Rwd: 1})
    assert unpacker.take_returns() == {"req_crd": 9, "data_crd": 9}
    one = join(Header(slot0=5, slot1=4, slot2=4, slot3=4), REQ, 0, 0, 0)
    unpacker.feed(one)
    with pytest.raises(FlitError, match="OVERFLOW"):
        unpacker.feed(one)
    unpacker = Unpacker(Direction.M2S, {Req: 1, Rwd: 1})
    with pytest.raises(FlitError, match="OVERFLOW"):
        unpacker.feed(one)
    with pytest.raises(ValueError, match="buffers of Req must be in 1..1023"):
        Unpacker(Direction.M2S, {Req: 0, Rwd: 1})
