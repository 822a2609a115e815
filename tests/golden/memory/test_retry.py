"""Link retry: nothing lost, nothing delivered twice, whatever the wire does."""

import random
from itertools import combinations

import pytest

from golden.memory.crc import fits, gray, seal, ungray
from golden.memory.flits import Fault, FlitError
from golden.memory.messages import Drs, Ndr, Req
from golden.memory.replay import ReplayBuffer
from golden.memory.retry import Config, Port, State
from golden.memory.slots import Control, Header, control_flit, control_of, join
from tests.golden.memory.link import MESSAGES, ports, run

STANDARD = Config(sequenced=False)


def check(config, seed, count=60, **options):
    rng = random.Random(seed)
    sent, got, ends, wires = run(rng, config, count, multi_header=seed % 2 == 1, **options)
    assert got == sent, f"seed {seed}: " + ", ".join(
        f"{kind.__name__} {len(got[kind])} of {len(sent[kind])}" for kind in MESSAGES)
    assert not any(end.dead or end.inbox for end in ends), f"seed {seed}"
    return ends, wires


def test_a_clean_link():
    ends, _ = check(Config(), 0, count=120)
    assert all(end.errors == end.replays == end.reinits == 0 for end in ends)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_flits_under_the_standards_crc(seed):
    ends, wires = check(STANDARD, seed, flip=0.05)
    assert sum(end.replays for end in ends) > 0 and sum(wire.damaged for wire in wires) > 20


@pytest.mark.parametrize("seed", range(6))
def test_damaged_lost_and_repeated_flits(seed):
    ends, wires = check(Config(), seed, latency=seed % 3 * 6, flip=0.02, lose=0.02, repeat=0.02)
    assert sum(end.replays for end in ends) > 0
    assert all(wire.damaged and wire.lost and wire.repeated for wire in wires)


@pytest.mark.regress
@pytest.mark.parametrize("seed", range(100, 130))
def test_damaged_lost_and_repeated_flits_at_length(seed):
    depth = random.Random(seed).choice([22, 32, 255])
    check(Config(depth=depth), seed, count=300, ticks=100000, latency=seed % 20,
          flip=0.02, lose=0.02, repeat=0.02)


def test_the_smallest_buffer_does_not_lock_up():
    for seed in range(2):
        check(Config(depth=22, timeout=200), seed, count=80, latency=30, flip=0.01, lose=0.01)


@pytest.mark.parametrize("seed", range(8))
def test_the_buffer_never_fills(seed):
    """No acknowledgement comes; the sender stops in time, all-data flits included."""
    rng = random.Random(seed)
    link = Script(Config(depth=rng.randrange(22, 30)), buffers=64, multi_header=True)
    link.step(40)
    lines = [Drs(opcode=0, tag=tag, data=rng.randbytes(64)) for tag in range(60)]
    for line in lines:
        link.device.packer.push(line)
    for _ in range(60):
        link.step(1, down=drop)
        assert link.device._buffer.free > 1, f"seed {seed}"
    assert not link.device.packer.all_data and len(link.got) < 60
    link.step(300)
    assert link.got == lines, f"seed {seed}"


def test_a_slow_reader_holds_the_sender_back():
    check(Config(), 3, count=40, take=0.05, flip=0.02, lose=0.02, repeat=0.02)


def test_the_standards_crc_alone_misses_lost_flits():
    """Why flits carry a number: without one, a lost flit goes unnoticed."""
    missed = 0
    for seed in range(4):
        sent, got, _, _ = run(random.Random(seed), STANDARD, 30, ticks=3000, lose=0.02)
        missed += got != sent
    assert missed


class Script:
    """A pair of ports whose flits pass through a list of replacements."""

    def __init__(self, config=None, **options):
        self.host, self.device = ports(config or Config(), **options)
        self.got = []

    def step(self, count=1, down=lambda flit: flit, up=lambda flit: flit):
        for _ in range(count):
            there, back = self.host.send(), self.device.send()
            self.device.receive(down(there) if there else None)
            self.host.receive(up(back) if back else None)
            for port in (self.host, self.device):
                while port.inbox:
                    self.got.append(port.inbox.popleft())
                    port.unpacker.release(type(self.got[-1]))


def drop(_):
    return None


def test_the_last_flit_of_all_is_missed_too():
    """Nothing follows that could show the gap; the probe does."""
    link = Script()
    link.step(40)
    request = Req(opcode=1, address=64, tag=5)
    link.host.packer.push(request)
    link.step(1, down=drop)
    assert not link.got
    link.step(100)
    assert link.got == [request] and link.device.errors == 1


def test_a_quiet_link_goes_quiet():
    link = Script()
    link.host.packer.push(Req(opcode=1, address=64, tag=5))
    link.step(200)
    sent = []
    link.step(400, down=lambda flit: sent.append(flit) or flit)
    kinds = {control_of(flit[:64])[0] for flit in sent}
    assert kinds <= {Control.RETRY_IDLE} and len(sent) <= 400 // 32 + 1


def retry_flit(port, control, payload):
    """A RETRY flit as the other end of ``port`` would send it now."""
    number = port._expected
    return seal(control_flit(control, payload | gray(number) << 56), number)


def test_requests_without_five_frames_are_ignored():
    link = Script()
    link.step(40)
    frame = retry_flit(link.host, Control.RETRY_FRAME, 0)
    ask = retry_flit(link.host, Control.RETRY_REQ, link.host._buffer.write)
    for frames, taken in ((0, False), (4, False), (5, True), (7, True)):
        for _ in range(frames):
            link.host.receive(frame)
        link.host.receive(ask)
        assert (link.host._asked is not None) == taken
        link.host._asked = None
    for _ in range(5):
        link.host.receive(frame)
    link.host.receive(None)  # an empty flit time is no flit
    link.host.receive(ask)
    assert link.host._asked is not None


def test_an_answer_nobody_awaits_is_ignored():
    link = Script()
    link.step(40)
    for _ in range(5):
        link.host.receive(retry_flit(link.host, Control.RETRY_FRAME, 0))
    link.host.receive(retry_flit(link.host, Control.RETRY_ACK, 1 << 3))
    assert link.host.state == State.NORMAL and not link.host.dead


@pytest.mark.parametrize("state, number, taken", [
    (State.WAIT, 2, True), (State.WAIT, 3, False), (State.REQUEST, 2, False),
])
def test_only_the_answer_to_the_last_request_counts(state, number, taken):
    link = Script()
    link.step(40)
    host = link.host
    host.state, host._requested = state, (2, host._expected)
    for _ in range(5):
        host.receive(retry_flit(host, Control.RETRY_FRAME, 0))
    host.receive(retry_flit(host, Control.RETRY_ACK, number << 3 | host._expected << 16))
    assert host.state == (State.NORMAL if taken else state)


@pytest.mark.parametrize("config", [Config(), STANDARD])
def test_data_that_look_like_a_retry_flit_are_data(config):
    link = Script(config, multi_header=True)
    link.step(40)
    look = control_flit(Control.RETRY_FRAME)
    lines = [bytes(48) + look[:16], bytes(64)]  # the all-data flit: one chunk, then three
    assert control_of(look)[0] == Control.RETRY_FRAME
    messages = [Drs(opcode=0, tag=tag, data=line) for tag, line in enumerate(lines)]
    for message in messages:
        link.device.packer.push(message)
    flits = []
    link.step(4, up=lambda flit: flits.append(flit[:64]) or flit)
    assert look in flits
    assert link.got == messages and link.host.errors == 0


def test_every_flit_is_acknowledged_in_the_end():
    link = Script()
    for tag in range(200):
        link.host.packer.push(Req(opcode=1, address=0, tag=tag))
        link.device.packer.push(Ndr(opcode=0, tag=tag))
    link.step(400)
    assert len(link.got) == 400
    assert all(port._buffer.held <= 1 for port in (link.host, link.device))


def test_a_request_for_a_flit_long_gone_is_ignored():
    link = Script()
    link.step(40)
    gone = (link.host._buffer.write - link.host._buffer.held - 1) % 32
    for _ in range(5):
        link.host.receive(retry_flit(link.host, Control.RETRY_FRAME, 0))
    link.host.receive(retry_flit(link.host, Control.RETRY_REQ, gone))
    assert link.host._asked is None


def test_a_lost_answer_is_asked_for_again():
    link = Script(Config(timeout=20))
    link.step(40)
    request = Req(opcode=1, address=0, tag=1)
    link.host.packer.push(request)
    link.step(1, down=lambda flit: bytes([flit[0] ^ 8]) + flit[1:])
    link.step(19, down=drop)  # the answer
    assert link.device.state == State.WAIT and not link.got
    link.step(60)
    assert link.got == [request] and link.device.state == State.NORMAL
    assert link.host.replays == 2


def test_a_dead_wire_ends_in_abort():
    config = Config(timeout=6, max_retries=2, max_reinits=2)
    link = Script(config)
    link.step(40)
    link.host.packer.push(Req(opcode=1, address=0, tag=1))
    link.step(500, down=lambda flit: bytes(66)[1:] + b"\1")
    assert link.device.state == State.ABORT and link.device.dead
    assert link.device.reinits == 2 and link.device.send() is None
    link.device.receive(bytes(66))
    assert not link.got


@pytest.mark.parametrize("body, fault", [
    (join(Header(control=1), 7, 0, 0, 0), Fault.CONTROL),
    (control_flit(Control.INIT_PARAM, 2 | 31 << 24), Fault.CONTROL),
    (control_flit(Control.LLCRD, 0x70), Fault.ACKNOWLEDGE),
    (join(Header(slot0=1), 0, 0, 0, 0), Fault.FORMAT),
])
def test_a_broken_peer_is_fatal(body, fault):
    link = Script()
    link.step(40)
    link.host.receive(seal(body, link.host._expected))
    assert link.host.fault == fault and link.host.dead and link.host.send() is None


def test_before_the_greeting_nothing_else_is_taken():
    for body in (control_flit(Control.LLCRD, 0), join(Header(slot0=4, slot1=5), 0, 0, 0, 0)):
        host, _ = ports(Config())
        host.receive(seal(body, 0))
        assert host.fault == Fault.CONTROL


def test_every_single_flip_of_every_kind_of_flit_is_refused():
    """A damaged RETRY flit or message is never taken for something else (up to two flips)."""
    rng = random.Random(4)
    for config in (Config(), STANDARD):
        number = 0 if config.sequenced else None
        retry = gray(0) << 56
        for body in (control_flit(Control.RETRY_REQ, retry | 3 << 16), control_flit(
                Control.INIT_PARAM, 2 | 31 << 24), control_flit(Control.RETRY_ACK, retry | 8)):
            flit = int.from_bytes(seal(body, number), "little")
            pairs = [(bit,) for bit in range(528)]
            pairs += rng.sample(list(combinations(range(528), 2)), 500)
            for bits in pairs:
                host, _ = ports(config)
                bad = flit ^ sum(1 << bit for bit in bits)
                host.receive(bad.to_bytes(66, "little"))
                assert host.state == State.REQUEST and host.errors == 1


def test_a_request_never_turns_into_an_answer():
    """Two flips turn the type; a third in the number shows up twice in the CRC. None cancels."""
    for number in range(255):
        ask = control_flit(Control.RETRY_REQ, gray(number) << 56)
        flit = int.from_bytes(seal(ask, number), "little") ^ 3 << 36
        assert control_of(flit.to_bytes(66, "little")[:64])[0] == Control.RETRY_ACK
        assert not fits(flit.to_bytes(66, "little"), number)
        for bit in range(8):
            other = ungray(gray(number) ^ 1 << bit)
            assert not fits((flit ^ 1 << 120 + bit).to_bytes(66, "little"), other)


def test_the_replay_buffer():
    buffer = ReplayBuffer(4)
    assert [buffer.store(bytes([n]), False) for n in range(3)] == [0, 1, 2]
    assert buffer.free == 1 and not buffer.replaying
    buffer.acknowledge(1)
    assert not buffer.rewind(0) and not buffer.rewind(4)
    assert buffer.rewind(3) and not buffer.replaying
    assert buffer.rewind(1) and buffer.replaying
    assert [buffer.replay() for _ in range(2)] == [(b"\1", 1), (b"\2", 2)]
    assert buffer.store(b"\3", True) == 3 and buffer.write == 0
    with pytest.raises(FlitError, match="ACKNOWLEDGE"):
        buffer.acknowledge(4)


@pytest.mark.parametrize("change, message", [
    ({"depth": 21}, "depth must be in 22..255, not 21"),
    ({"depth": 256}, "depth must be in 22..255"),
    ({"timeout": 5}, "timeout must be in 6.."),
    ({"max_retries": 32}, "max_retries must be in 1..31"),
    ({"ack_threshold": 7}, "ack_threshold must be in 8..255"),
])
def test_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Config(**change)


def test_credits_come_back():
    """As many messages pass as are read, and never more than there is room for."""
    link = Script(buffers=3)
    for tag in range(50):
        link.device.packer.push(Ndr(opcode=0, tag=tag))
    most = 0
    for _ in range(300):
        link.device.receive(link.host.send())
        link.host.receive(link.device.send())
        most = max(most, len(link.host.inbox))
    assert [m.tag for m in link.host.inbox] == [0, 1, 2] and most == 3
    link.step(400)
    assert [m.tag for m in link.got] == list(range(50))
    assert isinstance(link.host, Port)
