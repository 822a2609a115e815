import random
from collections import deque

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal

from golden.memory.device import Answer, answer_of, meta_after, respond
from golden.memory.device import Load as GoldenLoad
from golden.memory.image import ALL_BYTES, Image
from golden.memory.messages import Drs, MetaField, Ndr, Req, ReqOp, Rwd, RwdOp
from hw.config.memory import MemoryConfig
from hw.memory.endpoint import RESPONSES, Endpoint, endpoint_slot_count
from hw.memory.endpoint import Req as RequestOpcode
from hw.memory.endpoint import Rwd as DataOpcode
from hw.memory.endpoint_slots import EndpointSlots
from hw.memory.layouts import MetaAction, Operation, Status
from tests.hw.harness import plain, run_testbench

CONFIG = MemoryConfig(cxl_requests=8, cxl_data=4, tag_bits=5)
LINES = 16
RISES, FALLS = (40, 200, 600), (20, 150, 599)
FIELDS = ("opcode", "snp_type", "meta_field", "meta_value", "tag", "tc", "ld_id")
ANSWERED = (Answer.DATA, Answer.COMPLETE)


def random_message(rng, *, is_data):
    fields = {
        "opcode": rng.choice((*(RwdOp if is_data else ReqOp), rng.randrange(16))),
        "snp_type": rng.randrange(8 if rng.random() < 0.2 else 4),
        "meta_field": rng.choice((0, 0, 3, 3, rng.randrange(4))),
        "meta_value": rng.randrange(4), "tag": rng.randrange(1 << 16),
        "tc": rng.randrange(4), "ld_id": rng.randrange(16),
    }
    line = rng.randrange(LINES) + (LINES << 40)
    if not is_data:
        return Req(address=line * 64 + rng.choice((0, 32)), **fields)
    is_partial = fields["opcode"] == RwdOp.MEM_WR_PTL
    return Rwd(address=line * 64, data=rng.randbytes(64), poison=int(rng.random() < 0.2),
               byte_enables=rng.choice((rng.getrandbits(64), 0)) if is_partial else ALL_BYTES,
               **fields)


def driven(message):
    fields = {name: int(getattr(message, name)) for name in FIELDS}
    if isinstance(message, Req):
        return {**fields, "address": message.address >> 5}
    return {**fields, "address": message.address >> 6, "poison": message.poison,
            "enables": message.byte_enables, "data": int.from_bytes(message.data, "little")}


def fields_of(response):
    names = [name for name, _, _ in response.FIELDS]
    fields = {name: int(getattr(response, name)) for name in names}
    if isinstance(response, Drs):
        fields["data"] = int.from_bytes(response.data, "little")
    return fields


def to_bytes(value):
    return np.frombuffer(value.to_bytes(64, "little"), np.uint8)


class Bench:
    """Sends messages, and plays the lines behind: what each request does to them is done, and what
    the message should do, to an image each."""

    def __init__(self, messages, *, seed=0, stall=0.0, silent=False, missing=0.25, hold=4,
                 reset_cycle=None, poison_on_error=1, waiting=None, blocked=0):
        self.rng = random.Random(seed)
        self.stall, self.missing, self.hold, self.silent = stall, missing, hold, silent
        self.sent = [[m for m in messages if isinstance(m, kind)] for kind in (Req, Rwd)]
        self.reset_cycle, self.poison_on_error = reset_cycle, poison_on_error
        self.waiting, self.blocked = waiting, blocked
        self.clear()

    def clear(self):
        self.todo = [deque(messages) for messages in self.sent]
        self.under_way = [deque(), deque()]
        self.image, self.golden = Image(LINES), Image(LINES)
        self.load = GoldenLoad(rises=RISES, falls=FALLS)
        self.levels = [0, 0]
        self.answers, self.tags = [], set()
        self.expected = {"o_response": deque(), "o_data": deque()}
        self.violations, self.credits = [], [0, 0]
        self.cycles = {name: [] for name in
                       ("i_request", "i_data", "o", "i", "o_response", "o_data")}
        self.turns, self.log = [], None
        self.pulses = {"violation": [], "credit_request": [], "credit_data": []}

    def run(self, cycles=4000):
        dut, reset = Endpoint(CONFIG), Signal()
        self.dut = dut
        outs = (dut.o, dut.o_response, dut.o_data)

        async def bench(ctx):
            ctx.set(dut.context, 0xA5)
            ctx.set(dut.qos, 9)
            ctx.set(dut.rises, RISES)
            ctx.set(dut.falls, FALLS)
            ctx.set(dut.poison_on_error, self.poison_on_error)
            waiting, held, offered = 0, [None] * 3, [None] * 3
            feeds = (dut.i_request, dut.i_data, dut.i)
            quiet, cycle = 0, 0
            while quiet < 30 and cycle < cycles:
                is_reset = self.reset_cycle is not None and cycle == self.reset_cycle
                ctx.set(reset, is_reset)
                if self.waiting is None and self.rng.random() < 0.1:
                    waiting = self.rng.randrange(1024)
                ctx.set(dut.waiting, waiting)
                for index, port in enumerate(feeds):
                    if offered[index] is None and self.rng.random() >= self.stall:
                        offered[index] = self.next_offer(index)
                        if offered[index] is not None:
                            ctx.set(port.payload, offered[index][0])
                    ctx.set(port.valid, offered[index] is not None)
                ready = [self.rng.random() >= self.stall and (
                    port is dut.o or cycle >= self.blocked) for port in outs]
                for port, value in zip(outs, ready, strict=True):
                    ctx.set(port.ready, value)
                _, _, *seen = await ctx.tick().sample(
                    *(port.ready for port in feeds),
                    *(port.valid for port in outs), *(port.payload for port in outs),
                    dut.violation, dut.credit_request, dut.credit_data, dut.log)
                if is_reset:
                    assert any(self.under_way) or self.tags
                    self.reset_cycle, cycle, held, offered = None, 0, [None] * 3, [None] * 3
                    self.clear()
                    continue
                moved = self.settle(cycle, seen, offered, held, ready, waiting)
                quiet = 0 if moved or (self.answers and not self.silent) else quiet + 1
                cycle += 1

        run_testbench(ResetInserter(reset)(dut), bench, timeout_cycles=cycles + 2000)
        return self

    def next_offer(self, index):
        if index < 2:
            return (driven(self.todo[index][0]), None) if self.todo[index] else None
        if self.silent or not self.answers or (
                len(self.answers) < self.hold and self.rng.random() < self.stall):
            return None
        return self.answers.pop(self.rng.randrange(len(self.answers)))

    def settle(self, cycle, seen, offered, held, ready, waiting):
        moved = False
        self.levels.append(int(self.load.update(waiting)))
        for index, name in enumerate(("i_request", "i_data", "i")):
            if offered[index] is None or not seen[index]:
                continue
            moved = True
            self.cycles[name].append(cycle)
            if index < 2:
                message = self.todo[index].popleft()
                answer = answer_of(message)
                if answer == Answer.VIOLATION:
                    self.violations.append(message)
                if answer in ANSWERED:
                    self.under_way[index].append(message)
            else:
                payload, (message, answer, read) = offered[index]
                self.tags.discard(payload["tag"])
                self.respond(message, answer, read, cycle)
            offered[index] = None
        for index, name in enumerate(("o", "o_response", "o_data")):
            valid, payload = seen[3 + index], plain(seen[6 + index])
            if held[index] is not None:
                assert valid and payload == held[index], f"{name} changed before its transfer"
            held[index] = payload if valid and not ready[index] else None
            if valid and ready[index]:
                moved = True
                self.cycles[name].append(cycle)
                if name == "o":
                    self.execute(payload)
                else:
                    self.check_response(name, payload)
        for value, name in zip(seen[9:12], self.pulses, strict=True):
            if value:
                self.pulses[name].append(cycle)
        self.log = plain(seen[12])
        return moved

    def execute(self, request):
        """Do a request to the lines, and its message to golden's; keep both results."""
        is_data = request["operation"] == Operation.WRITE
        message = self.under_way[is_data].popleft()
        self.turns.append(int(is_data))
        assert request["tag"] not in self.tags, "a slot was given twice"
        self.tags.add(request["tag"])
        assert (request["line"], request["context"], request["qos"], request["source"]) == (
            message.address >> 6, 0xA5, 9, 0)
        line = request["line"] % LINES
        status = Status.DONE
        if self.rng.random() < self.missing:
            status = self.rng.choice((Status.MISSING, Status.REFUSED))
        answer = answer_of(message, exists=status == Status.DONE)
        answered = {"tag": request["tag"], "status": status, "source": 0,
                    "data": self.rng.getrandbits(512), "meta": self.rng.randrange(4),
                    "poison": self.rng.randrange(2)}
        read = None
        if status == Status.DONE:
            answered.update(self.access(line, request))
            read = self.golden.read(line)
            meta = meta_after(message, read.meta)
            if is_data:
                self.golden.write(line, np.frombuffer(message.data, np.uint8),
                                  message.byte_enables, message.poison, meta)
            else:
                self.golden.read(line, meta)
            self.compare(line)
        self.answers.append((answered, (message, answer, read)))

    def access(self, line, request):
        read = self.image.read(line)
        meta = {MetaAction.KEEP: read.meta, MetaAction.STORE: request["meta"],
                MetaAction.RAISE: read.meta or 2}[request["meta_action"]]
        if request["operation"] == Operation.WRITE:
            self.image.write(line, to_bytes(request["data"]), request["enables"],
                             request["poison"], meta)
        else:
            self.image.read(line, meta)
        answered = {"meta": read.meta}
        if request["operation"] == Operation.READ:
            answered["data"] = int.from_bytes(read.data.tobytes(), "little")
            answered["poison"] = int(read.poison)
        return answered

    def compare(self, line):
        ours, theirs = self.image.read(line), self.golden.read(line)
        assert (ours.poison, ours.meta) == (theirs.poison, theirs.meta)
        assert np.array_equal(ours.data, theirs.data)

    def respond(self, message, answer, read, cycle):
        known = {} if read is None else {
            "data": read.data.tobytes(), "poison": read.poison, "stored": read.meta}
        response = respond(message, answer, dev_load=self.levels[cycle + 1],
                           poison_nxm=bool(self.poison_on_error), **known)
        name = "o_response" if isinstance(response, Ndr) else "o_data"
        self.expected[name].append(fields_of(response))

    def check_response(self, name, payload):
        assert payload == self.expected[name].popleft()

    def check_end(self):
        assert not any(self.todo) and not any(self.under_way) and not self.answers
        assert not any(self.expected.values()) and not self.tags
        assert len(self.pulses["violation"]) == len(self.violations)
        assert len(self.pulses["credit_request"]) == len(self.sent[0])
        assert len(self.pulses["credit_data"]) == len(self.sent[1])
        return self


def make_messages(seed, count=150):
    rng = random.Random(seed)
    return [random_message(rng, is_data=rng.random() < 0.4) for _ in range(count)]


def read_of(number, **fields):
    return Req(**{"opcode": ReqOp.MEM_RD, "address": number % LINES * 64, "tag": number, **fields})


def write_of(number):
    return Rwd(opcode=RwdOp.MEM_WR, address=number % LINES * 64, tag=number,
               data=bytes([number]) * 64)


@pytest.mark.parametrize(("seed", "stall"), [
    (1, 0.0), (2, 0.3), (3, 0.7),
    *(pytest.param(seed, seed % 4 * 0.2, marks=pytest.mark.regress) for seed in range(4, 16))])
def test_messages_at_random(seed, stall):
    Bench(make_messages(seed), seed=seed, stall=stall, poison_on_error=seed % 2).run().check_end()


def test_reset_in_mid_stream():
    Bench(make_messages(21, 80), seed=21, stall=0.3, reset_cycle=47).run().check_end()


def test_latency():
    for message, port, out in ((read_of(1), "i_request", "o_data"),
                               (write_of(1), "i_data", "o_response")):
        cycles = Bench([message], missing=0, waiting=0).run().check_end().cycles
        assert cycles["o"][0] - cycles[port][0] == 2
        assert cycles[out][0] - cycles["i"][0] == 2


def test_credit_and_violation_come_after_two_cycles():
    bench = Bench([read_of(1, opcode=15)]).run().check_end()
    start = bench.cycles["i_request"][0]
    assert bench.pulses["violation"] == bench.pulses["credit_request"] == [start + 2]


@pytest.mark.parametrize("kinds", ["r", "w", "rw"])
def test_a_message_per_cycle_and_fair_turns(kinds):
    messages = [{"r": read_of, "w": write_of}[kind](number)
                for number in range(40) for kind in kinds]
    bench = Bench(messages, missing=0).run().check_end()
    cycles = bench.cycles["o"]
    assert cycles == list(range(cycles[0], cycles[0] + len(messages)))
    assert bench.cycles["i"] == [cycle + 1 for cycle in cycles]
    if kinds == "rw":
        assert bench.turns == [0, 1] * 40


def test_slots_run_out_without_answers():
    bench = Bench([read_of(number) for number in range(40)], silent=True).run()
    assert len(bench.cycles["o"]) == endpoint_slot_count(CONFIG) == 16
    assert len(bench.cycles["i_request"]) == 16 + 8  # one per slot, and one per buffer
    assert bench.tags == set(range(16))


@pytest.mark.parametrize("make", [read_of, write_of])
def test_no_response_is_lost_when_the_link_takes_none(make):
    bench = Bench([make(number) for number in range(14)], missing=0, blocked=50).run().check_end()
    assert sum(cycle < 50 for cycle in bench.cycles["i"]) == RESPONSES


def test_hints_and_violations_need_no_slot():
    blocked = [write_of(number) for number in range(16)]
    hints = [read_of(number, opcode=ReqOp.MEM_SPEC_RD, snp_type=7, meta_field=1)
             for number in range(12)]
    reserved = [read_of(number, meta_field=MetaField.META0_STATE + 2) for number in range(12)]
    bench = Bench([*blocked, *hints, *reserved], silent=True).run()
    assert len(bench.pulses["credit_request"]) == 24
    assert len(bench.pulses["violation"]) == 12


def test_first_violation_is_logged():
    first = read_of(7, opcode=12, address=5 * 64 + 32, ld_id=3, snp_type=1, meta_value=2)
    bench = Bench([read_of(3), first, read_of(8, opcode=13)]).run().check_end()
    assert bench.log == {
        "valid": 1, "is_data": 0, "opcode": 12, "snp_type": 1, "meta_field": 3, "meta_value": 2,
        "tag": 7, "line": 5, "ld_id": 3}


def test_log_is_cleared():
    """Also in the cycle of a violation, which is then the first."""
    dut = Endpoint(CONFIG)
    tags = []

    async def bench(ctx):
        for cycle in range(16):
            ctx.set(dut.i_request.valid, cycle in (1, 2, 8))
            ctx.set(dut.i_request.payload, {"opcode": 15, "tag": cycle})
            ctx.set(dut.clear_log, cycle in (9, 13))
            _, _, log = await ctx.tick().sample(dut.log)
            tags.append(log.tag if log.valid else None)

    run_testbench(dut, bench)
    assert tags == [None] * 3 + [1] * 7 + [8] * 4 + [None] * 2


def test_opcodes_are_those_of_golden():
    assert {"MEM_" + each.name: each.value for each in RequestOpcode} == {
        each.name: each.value for each in ReqOp}
    assert {"MEM_" + each.name: each.value for each in DataOpcode} == {
        each.name: each.value for each in RwdOp if each != RwdOp.BI_CONFLICT}


@pytest.mark.parametrize(("fields", "count"), [
    ({}, 64), ({"cxl_requests": 2, "cxl_data": 2}, 4),
    ({"cxl_requests": 64, "cxl_data": 64, "tag_bits": 6}, 64)])
def test_slot_count(fields, count):
    assert endpoint_slot_count(MemoryConfig(**fields)) == count


def test_bad_parameters():
    with pytest.raises(TypeError, match="Endpoint config must be a MemoryConfig, not None"):
        Endpoint(None)
    with pytest.raises(ValueError, match="EndpointSlots count must be a power of two, not 6"):
        EndpointSlots(count=6)
