"""Messages of every opcode, answered out of order: responses equal golden's, each once."""

import random

import cocotb

from golden.memory.device import Answer, answer_of, respond
from golden.memory.messages import Drs, Req, ReqOp, Rwd, RwdOp
from hw.memory.layouts import Status
from sim.payload import pack
from sim.stream import StreamSink, StreamSource
from sim.testbench import cycles, port_of, start

COUNT = 120  # of each kind
WAITING, DEV_LOAD = 300, 2  # above the second threshold
RISES, FALLS = [40, 200, 600], [20, 150, 599]
HEADER = ("opcode", "snp_type", "meta_field", "meta_value", "tag", "tc", "ld_id")


def make_message(number, is_data):
    """One whose address and tag are its number."""
    fields = {
        "opcode": random.choice((*(RwdOp if is_data else ReqOp), random.randrange(16))),
        "snp_type": random.randrange(8 if random.random() < 0.2 else 4),
        "meta_field": random.choice((0, 3, random.randrange(4))),
        "meta_value": random.randrange(4), "tag": number, "tc": random.randrange(4),
        "ld_id": random.randrange(16), "address": number * 64,
    }
    if is_data:
        return Rwd(data=random.randbytes(64), poison=random.getrandbits(1), **fields)
    return Req(**fields)


def to_payload(message):
    fields = {name: int(getattr(message, name)) for name in HEADER}
    if isinstance(message, Req):
        return {**fields, "address": message.address >> 5}
    return {**fields, "address": message.address >> 6, "poison": message.poison,
            "enables": message.byte_enables, "data": int.from_bytes(message.data, "little")}


def to_expected(response):
    fields = {name: int(getattr(response, name)) for name, _, _ in response.FIELDS}
    if isinstance(response, Drs):
        fields["data"] = int.from_bytes(response.data, "little")
    return fields


class Lines:
    """Answers requests in any order, and notes what golden responds."""

    def __init__(self, dut, messages, stall):
        self.messages, self.waiting = messages, []
        self.expected = []
        self.answers = StreamSource(dut, "i", idle_probability=stall)
        self.sink = StreamSink(dut, "o", stall_probability=stall, on_item=self.waiting.append)

    def answer(self):
        """Answer one request that waits."""
        request = self.waiting.pop(random.randrange(len(self.waiting)))
        message = self.messages.pop(request["line"])
        status = random.choice(list(Status))
        data, meta = random.randbytes(64), random.randrange(4)
        poison = random.getrandbits(1)
        answer = answer_of(message, exists=status == Status.DONE)
        self.expected.append(to_expected(respond(
            message, answer, dev_load=DEV_LOAD, data=data, poison=poison, stored=meta)))
        self.answers.send([{
            "source": 0, "tag": request["tag"], "status": status.value, "poison": poison,
            "meta": meta, "data": int.from_bytes(data, "little")}])


def by_tag(responses):
    return sorted(responses, key=lambda fields: fields["tag"])


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(stall=[0.0, 0.4])
async def responds_as_golden(dut, stall):
    await start(dut)
    dut.waiting.value = WAITING
    dut.rises.value = pack(port_of("rises"), RISES)
    dut.falls.value = pack(port_of("falls"), FALLS)
    dut.poison_on_error.value = 1
    await cycles(dut, 4)
    messages = [make_message(number, number % 2) for number in range(2 * COUNT)]
    answered = {number: message for number, message in enumerate(messages)
                if answer_of(message) in (Answer.DATA, Answer.COMPLETE)}
    count = len(answered)
    lines = Lines(dut, answered, stall)
    got = []
    for name in ("o_response", "o_data"):
        StreamSink(dut, name, stall_probability=stall, on_item=got.append)
    for name, first in (("i_request", 0), ("i_data", 1)):
        source = StreamSource(dut, name, idle_probability=stall)
        source.send([to_payload(message) for message in messages[first::2]])
    while len(lines.expected) < count:
        await cycles(dut, 1)
        if len(lines.waiting) > 8 or (lines.waiting and random.random() < 0.3):
            lines.answer()
    await lines.answers.drained()
    while len(got) < count:
        await cycles(dut, 1)
    await cycles(dut, 30)
    assert not lines.messages
    assert by_tag(got) == by_tag(lines.expected)
