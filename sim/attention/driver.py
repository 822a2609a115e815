"""Drives the attention unit's ports under cocotb: registers, commands, data and results."""

import numpy as np
from cocotb.simtime import get_sim_time
from cocotb.triggers import Event

from hw.attention.register_map import COUNTERS, ENTRY_FIELDS, address_of
from sim.attention.encoding import encode
from sim.attention.operations import Query, QueryResult, Status
from sim.register_driver import RegisterDriver
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import CLOCK_NS, reset

__all__ = ["AttentionDriver"]

STATUS, OUTPUT, STATE, LOGIT = range(4)


class AttentionDriver(RegisterDriver):
    """Speaks the unit's protocol.

    Parameters
    ----------
    dut : handle
        The unit, or what surrounds it and has its ports.
    config : AttentionConfig
    idle_probability, stall_probability : float
        Share of idle cycles on the input streams, and of stalled ones on the result stream.
    """

    def __init__(self, dut, config, *, idle_probability=0.0, stall_probability=0.0):
        super().__init__(dut, address_of)
        self.config = config
        self.idle_probability = idle_probability
        self.stall_probability = stall_probability
        self.results = {}
        self._tag = 0
        self._changed = Event()
        self._attach()

    def _attach(self):
        """Take hold of the streams, with nothing in progress."""
        idle, stall = self.idle_probability, self.stall_probability
        self.command = StreamSource(self.dut, "i_command", idle_probability=idle,
                                    on_item=self._on_start)
        self.data = StreamSource(self.dut, "i_data", idle_probability=idle)
        self.sink = StreamSink(self.dut, "o_result", stall_probability=stall,
                               on_item=self._on_beat)
        self._streams = [self.command, self.data, self.sink]
        if stall:  # without stalls there is nothing to hold
            self._streams.append(StreamMonitor(self.dut, "o_result"))
        self._pending = {}
        self._starts = {}
        self._beats = {}

    async def reset(self):
        """Reset the unit: what has not ended gives no result."""
        for stream in self._streams:
            stream.stop()
        await reset(self.dut)
        self._attach()

    # Registers.

    async def enter_context(self, index, entry, *, valid=True):
        """Enter (or forget) a context and return the fault code, 0 when it was taken."""
        await self.write("context_index", index)
        for name, is_address in ENTRY_FIELDS:
            value = int(entry.get(name, 0))
            if is_address:
                await self.write_address(f"entry_{name}", value)
            else:
                await self.write(f"entry_{name}", value)
        await self.write("context_enter", int(valid))
        return await self.read("context_fault")

    async def read_counters(self, *, clear=True):
        """See `sim.attention.Counters`."""
        values = {}
        for name, _ in COUNTERS:
            values[name] = await self.read(name)
            if name == "cycles_idle":
                values["now"] = self._cycle()
        if clear:
            await self.write("counter_clear", 1)
        return values

    # Commands.

    def send(self, operation):
        """Queue a command with its data, and return its tag."""
        tag = self._tag
        self._tag = (tag + 1) & 0xFFFF
        fields, beats = encode(self.config, operation)
        self._pending[tag] = operation
        self.command.send([{"tag": tag, **fields}])
        self.data.send(beats)
        return tag

    async def idle(self):
        """Wait until every command sent has its STATUS."""
        while self._pending:
            self._changed.clear()
            await self._changed.wait()

    # Results.

    def _on_start(self, item):
        self._starts[item["tag"]] = self._cycle()

    def _cycle(self):
        return int(get_sim_time("ns")) // CLOCK_NS

    def _on_beat(self, beat):
        tag = beat["tag"]
        assert tag in self._pending, f"result for tag {tag}, which is not in progress"
        if beat["kind"] != STATUS:
            self._beats.setdefault(tag, []).append((self._cycle(), beat))
            return
        operation = self._pending.pop(tag)
        self.results[tag] = self._decode(operation, tag, beat)
        self._changed.set()

    def _decode(self, operation, tag, status):
        beats = self._beats.pop(tag, [])
        words = status["words"]
        common = {"error": words[0] & 15, "start_cycle": self._starts.pop(tag),
                  "end_cycle": self._cycle()}
        if not isinstance(operation, Query):
            assert not beats, f"tag {tag}: a command without results gave {len(beats)} beats"
            return Status(**common, length=words[1])
        config = self.config
        result = QueryResult(
            **common, full=words[1], coarse=words[2], summaries=words[3],
            saturated=bool(words[0] >> 4 & 1), beats=words[0] >> 8)
        outputs = [[] for _ in range(config.group)]
        state_words = [[] for _ in range(config.group)]
        result.logits = [[] for _ in range(config.group)]
        for cycle, beat in beats:
            head = beat["head"]
            if beat["kind"] == OUTPUT:
                outputs[head] += beat["words"]
                result.output_cycle = cycle
            elif beat["kind"] == STATE:
                state_words[head].append(beat["words"])
            else:
                assert beat["kind"] == LOGIT
                first, logit, weight = beat["words"][:3]
                logit -= (logit >> 31) << 32
                result.logits[head].append((first & (1 << 30) - 1, first >> 30, weight, logit))
        if any(outputs):
            result.outputs = np.array(outputs, dtype=np.uint32)
            assert result.outputs.shape == (config.group, config.head_dim)
        if any(state_words):
            result.states = [self._decode_state(rows) for rows in state_words]
        return result

    def _decode_state(self, rows):
        header, rest = rows[0], np.array(rows[1:], dtype=np.uint64).reshape(-1, 2)
        values = (rest[:, 0] | rest[:, 1] << np.uint64(32)).astype(np.int64)
        assert len(values) == self.config.head_dim, f"state has {len(values)} elements"
        maximum = header[0] - ((header[0] >> 31) << 32)
        return maximum, header[1], header[2] | header[3] << 32, values
