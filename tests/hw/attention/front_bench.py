"""What should come of commands, and what surrounds the front end."""

from collections import deque
from copy import deepcopy

from hw.attention.contexts import context_view
from hw.attention.front import Front
from hw.attention.layouts import Error, Opcode, Select, command, context_entry, data_beat
from hw.config import EXPONENT_NAN
from tests.hw.attention.packing import garbage, packed
from tests.hw.harness import plain, run_stream_test


def encode(config, request):
    """The stub encoder's code of a vector."""
    total = sum((place + 1) * value for place, value in enumerate(request["vector"]))
    return (total * 0x9E3779B97F4A7C15 + request["weight_set"]) % (1 << config.code_bits)


class Model:
    """What the front end should deliver, by stream; slots are left out."""

    def __init__(self, config, entries):
        self.config = config
        self.entries = deepcopy(entries)
        self.faults = []  # of each append that reaches the append unit
        self.outputs = {name: [] for name in (
            "o_lookup", "o_encode", "o_job", "o_issued", "o_append", "o_weight", "o_length",
            "o_status", *(f"o_query.{head}" for head in range(config.group)))}

    def run(self, work):
        """Returns the error, or None for an issued query."""
        item = work.command
        self.outputs["o_lookup"].append(item["context"])
        entry = self.entries.get(item["context"])
        error, length = self._check(work, entry), 0
        run = {0: self._query, 1: self._append, 2: self._weights}.get(self._opcode(item))
        if error == Error.NONE:
            error = run(work, entry)
        if error is None:
            return None
        if self._opcode(item) == Opcode.APPEND.value and entry:
            length = entry["length"]
        self.outputs["o_status"].append({"tag": item["tag"], "error": error, "length": length})
        return error

    @staticmethod
    def _opcode(item):
        return getattr(item["opcode"], "value", item["opcode"])

    def _check(self, work, entry):
        item, opcode = work.command, self._opcode(work.command)
        if opcode == Opcode.WEIGHTS.value:
            rows = 2 * self.config.encoder_sets * self.config.code_bits
            if item["index"] + item["count"] > rows:
                return Error.CAPACITY
            return Error.DATA if item["count"] == 0 else Error.NONE
        if opcode > Opcode.WEIGHTS.value:
            return Error.OPCODE
        if entry is None:
            return Error.CONTEXT
        if opcode == Opcode.APPEND.value:
            if entry["length"] + item["count"] > entry["capacity"]:
                return Error.CAPACITY
            return Error.DATA if item["count"] == 0 else Error.NONE
        if entry["length"] == 0:
            return Error.EMPTY
        if item["visible"] > entry["length"]:
            return Error.VISIBLE
        visible = item["visible"] or entry["length"]
        if item["select"] == Select.BUDGET and item["full"] + item["coarse"] > visible:
            return Error.BUDGET
        return Error.NONE

    def _query(self, work, entry):
        config, item = self.config, work.command
        codes = []
        for head, is_bad in work.judge(config):
            if is_bad:
                return Error.DATA
            if head == config.group:
                continue
            vector = work.vectors[head]
            self.outputs[f"o_query.{head}"].append(
                {"vector": vector, "exponent": item["exponents"][head]})
            if not item["has_code"] and item["select"] != Select.DENSE:
                request = {"weight_set": entry["weight_set"], "vector": vector}
                self.outputs["o_encode"].append(request)
                codes.append(encode(config, request))
        select = Select(getattr(item["select"], "value", item["select"]))
        job = {name: item[name] for name in (
            "tag", "logits_only", "summaries", "full", "coarse", "sink", "recent", "minimum")}
        job |= {"select": select, "visible": item["visible"] or entry["length"],
                "entry": dict(entry)}
        codes = None if select == Select.DENSE else work.codes or codes
        self.outputs["o_job"].append({"job": job, "codes": codes})
        self.outputs["o_issued"].append({name: item[name] for name in (
            "tag", "logits_only", "want_output", "want_state")})
        return None

    def _append(self, work, entry):
        config, item = self.config, work.command
        error = Error.NONE
        self.faults.append(work.fault)
        for number, is_bad in work.judge(config):
            token = work.tokens[number]
            row_error = Error.NONE
            if is_bad:
                row_error = Error.DATA
            elif EXPONENT_NAN in token["keys"] + token["values"]:
                row_error = Error.EXPONENT
            is_last = is_bad or number == item["count"] - 1 or row_error != Error.NONE
            row = {"error": row_error, "context": item["context"] % (1 << config.context_bits),
                   "position": entry["length"] + number, "last": int(is_last),
                   "has_code": item["has_code"], "entry": dict(entry)}
            if row_error == Error.NONE:
                row |= {"key": int.from_bytes(token["key"], "little"),
                        "value": int.from_bytes(token["value"], "little"),
                        "keys": token["keys"], "values": token["values"]}
                if item["has_code"]:
                    row["code"] = int.from_bytes(token["code"], "little")
            self.outputs["o_append"].append(row)
            if error == Error.NONE:
                at_fault = work.fault and work.fault[0] == number
                error = work.fault[1] if at_fault else row_error
            if is_last:
                break
        if error == Error.NONE:
            entry["length"] += item["count"]
            self.outputs["o_length"].append(
                {"index": item["context"], "length": entry["length"]})
        return error

    def _weights(self, work, _entry):
        for number, is_bad in work.judge(self.config):
            if is_bad:
                return Error.DATA
            row = int.from_bytes(work.records[number], "little")
            self.outputs["o_weight"].append(
                {"index": work.command["index"] + number, "data": row})
        return Error.NONE


class _Reply:
    """Drives an input stream with answers, each some cycles after it was pushed."""

    def __init__(self, port, rng, stall_probability, delay=0):
        self.port = port
        self.rng = rng
        self.stall_probability = stall_probability
        self.delay = delay
        self.waiting = deque()
        self.valid = False
        self.cycles = []

    def push(self, cycle, value):
        self.waiting.append((cycle + self.delay, value))

    def step(self, ctx, cycle, was_ready):
        """After the clock edge of ``cycle``."""
        if self.valid and was_ready:
            self.cycles.append(cycle)
            self.waiting.popleft()
            self.valid = False
        if (not self.valid and self.waiting and self.waiting[0][0] <= cycle
                and self.rng.random() >= self.stall_probability):
            ctx.set(self.port.payload, self.waiting[0][1])
            self.valid = True
        ctx.set(self.port.valid, self.valid)


class Surroundings:
    """Context table, encoder, append unit and results of a front end; the slots it may use.

    It watches the transfers of the outputs, so that these can stall as a test wants.
    """

    def __init__(self, dut, config, entries, faults, rng, *, stall_probability, encoder_delay=0,
                 keep_slots=False):
        self.dut = dut
        self.config = config
        self.entries = deepcopy(entries)
        self.faults = deque(faults)
        self.rng = rng
        self.stall_probability = stall_probability
        self.keep_slots = keep_slots
        self.held = {}  # slot to the halves of its query that were taken
        self.slots = []
        self.row = 0
        self.append_error = Error.NONE
        self.views = _Reply(dut.i_view, rng, stall_probability)
        self.codes = _Reply(dut.i_encoded, rng, stall_probability, encoder_delay)
        self.answers = _Reply(dut.i_appended, rng, stall_probability)

    async def run(self, ctx):
        dut = self.dut
        outputs = [dut.o_lookup, dut.o_encode, dut.o_append, dut.o_length, dut.o_issued, dut.o_job,
                   *dut.o_query]
        handlers = [self._look_up, self._encode, self._append, self._lengthen, self._issued,
                    self._job, *[self._load] * self.config.group]
        replies = [self.views, self.codes, self.answers]
        sampled = [signal for port in outputs for signal in (port.valid, port.ready, port.payload)]
        sampled += [reply.port.ready for reply in replies]
        cycle = 0
        async for _, _, *values in ctx.tick().sample(*sampled):
            for number, handler in enumerate(handlers):
                valid, ready, payload = values[3 * number:3 * number + 3]
                if valid and ready:
                    handler(cycle, payload)
            for reply, ready in zip(replies, values[3 * len(outputs):], strict=True):
                reply.step(ctx, cycle, ready)
            self._release(ctx)
            cycle += 1

    def _look_up(self, cycle, index):
        entry = self.entries.get(index)
        view = {"valid": 0, "entry": garbage(self.rng, context_entry(self.config))}
        if entry:
            view = {"valid": 1, "entry": entry}
        self.views.push(cycle, packed(context_view(self.config), view))

    def _encode(self, cycle, request):
        assert request.is_key == 0
        self.codes.push(cycle, encode(self.config, plain(request)))

    def _append(self, cycle, row):
        fault = self.faults[0]
        if self.append_error == Error.NONE:
            self.append_error = fault[1] if fault and fault[0] == self.row else row.error
        self.row += 1
        if row.last:
            self.answers.push(cycle, {"error": self.append_error})
            self.append_error, self.row = Error.NONE, 0
            self.faults.popleft()

    def _lengthen(self, _cycle, update):
        self.entries[update.index]["length"] = update.length

    def _load(self, _cycle, vector):
        assert vector.slot not in self.held, "a vector was written over one in use"

    def _take_half(self, slot, half):
        halves = self.held.setdefault(slot, set())
        assert half not in halves, "two queries in one slot"
        halves.add(half)

    def _issued(self, _cycle, note):
        self._take_half(note.slot, "note")
        self.slots.append(note.slot)

    def _job(self, _cycle, job):
        self._take_half(job.job.slot, "job")

    def _release(self, ctx):
        done = [slot for slot, halves in self.held.items() if len(halves) == 2]
        slot = None
        if done and not self.keep_slots and self.rng.random() < 0.1:
            slot = self.rng.choice(done)
            del self.held[slot]
        ctx.set(self.dut.i_release.payload, slot or 0)
        ctx.set(self.dut.i_release.valid, slot is not None)


def known(name, item):
    """An output without its slot, and without what means nothing."""
    if name.startswith("o_query") or name == "o_issued":
        return {key: value for key, value in item.items() if key != "slot"}
    if name == "o_job":
        job = {key: value for key, value in item["job"].items() if key != "slot"}
        return {"job": job, "codes": None if job["select"] == Select.DENSE else item["codes"]}
    if name == "o_encode":
        return {key: item[key] for key in ("weight_set", "vector")}
    if name == "o_append":
        data = {"key", "value", "keys", "values", "code"}
        dropped = data if item["error"] != Error.NONE else set() if item["has_code"] else {"code"}
        return {key: value for key, value in item.items() if key not in dropped}
    return item


def make_entries(config, rng, lengths):
    """Garbage entries by index, with the given (length, capacity)."""
    return {index: garbage(rng, context_entry(config)) | {"length": length, "capacity": capacity}
            for index, (length, capacity) in lengths.items()}


def run_front(config, entries, works, rng, *, stall_probability=0.0, dut=None,
              timeout_cycles=6_000, testbenches=(), **options):
    """Run commands and compare every output. The options are those of `Surroundings`.

    Returns the result, the error of each command (None for an issued query), and the surroundings.
    """
    dut = dut or Front(config)
    model = Model(config, entries)
    errors = [model.run(work) for work in works]
    around = Surroundings(dut, config, entries, model.faults, rng,
                          stall_probability=stall_probability, **options)
    commands = [packed(command(config), work.command) for work in works]
    beats = [packed(data_beat(config), beat) for work in works for beat in work.beats(config, rng)]
    result = run_stream_test(
        dut, feeds={"i_command": commands, "i_data": beats},
        sinks={name: len(items) for name, items in model.outputs.items()},
        seed=rng.randrange(1 << 30), stall_probability=stall_probability,
        timeout_cycles=timeout_cycles, testbenches=[around.run, *testbenches])
    for name, items in model.outputs.items():
        assert [known(name, item) for item in result.outputs[name]] == items, name
    issued = [item["slot"] for item in result.outputs["o_issued"]]
    assert issued == [item["job"]["slot"] for item in result.outputs["o_job"]]
    return result, errors, around
