"""Drives the attention unit's ports under cocotb: registers, commands, data and results."""

import warnings

import numpy as np
from cocotb.simtime import get_sim_time
from cocotb.triggers import Event

from golden.mxint import pack_row
from hw.attention.register_map import COUNTERS, ENTRY_FIELDS, address_of
from sim.attention.operations import Append, Query, QueryResult, Status, Weights
from sim.stream import StreamMonitor, StreamSink, StreamSource
from sim.testbench import CLOCK_NS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from cocotbext.axi import AxiLiteBus, AxiLiteMaster

__all__ = ["AttentionDriver"]

STATUS, OUTPUT, STATE, LOGIT = range(4)


def little_endian(bits):
    """Bits [n, width] (bit 0 first) as bytes, each row padded to whole bytes."""
    return np.packbits(np.asarray(bits, dtype=np.uint8), axis=-1, bitorder="little")


class AttentionDriver:
    """Speaks the unit's protocol.

    Parameters
    ----------
    dut : handle
        A ``MemoryBench`` around the unit.
    config : AttentionConfig
    idle_probability, stall_probability : float
        Share of idle cycles on the input streams, and of stalled ones on the result stream.
    """

    def __init__(self, dut, config, *, idle_probability=0.0, stall_probability=0.0):
        self.dut = dut
        self.config = config
        self.axil = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        for channels in (self.axil.write_if, self.axil.read_if):
            channels.log.setLevel("WARNING")
        self.command = StreamSource(dut, "i_command", idle_probability=idle_probability)
        self.data = StreamSource(dut, "i_data", idle_probability=idle_probability)
        self.sink = StreamSink(dut, "o_result", stall_probability=stall_probability,
                               on_item=self._on_beat)
        self.starts = StreamMonitor(dut, "i_command", on_item=self._on_start)
        self.results = {}
        self._pending = {}
        self._starts = {}
        self._beats = {}
        self._tag = 0
        self._changed = Event()

    # Registers.

    async def write(self, name, value):
        response = await self.axil.write(address_of(name), int(value).to_bytes(4, "little"))
        assert response.resp == 0, f"write of {name} answered {response.resp!r}"

    async def read(self, name):
        response = await self.axil.read(address_of(name), 4)
        assert response.resp == 0, f"read of {name} answered {response.resp!r}"
        return int.from_bytes(response.data, "little")

    async def enter_context(self, index, entry, *, valid=True):
        """Enter (or forget) a context and return the fault code, 0 when it was taken."""
        await self.write("context_index", index)
        for name, is_address in ENTRY_FIELDS:
            value = int(entry.get(name, 0))
            await self.write(f"entry_{name}", value & 0xFFFFFFFF)
            if is_address:
                await self.write(f"entry_{name}_high", value >> 32)
        await self.write("context_enter", int(valid))
        return await self.read("context_fault")

    async def enter_pages(self, base, pages):
        await self.write("table_index", base)
        for page in pages:
            await self.write("table_page", int(page))

    async def read_counters(self):
        values = {name: await self.read(name) for name, _ in COUNTERS}
        await self.write("counter_clear", 1)
        return values

    # Commands.

    def send(self, operation):
        """Queue a command with its data, and return its tag."""
        tag = self._tag
        self._tag = (tag + 1) & 0xFFFF
        fields, records = self._encode(operation)
        self._pending[tag] = operation
        self.command.send([{"tag": tag, **fields}])
        width = self.config.memory_bytes
        beats = []
        for record in records:
            record = bytes(record) + bytes(-len(record) % width)
            beats += [record[at:at + width] for at in range(0, len(record), width)]
        self.data.send([
            {"data": int.from_bytes(beat, "little"), "last": int(index == len(beats) - 1)}
            for index, beat in enumerate(beats)])
        return tag

    def stop(self):
        """Leave all ports alone from now on: what has not ended gives no result."""
        for port in (self.command, self.data, self.sink, self.starts):
            port.stop()

    async def idle(self):
        """Wait until every command sent has its STATUS."""
        while self._pending:
            self._changed.clear()
            await self._changed.wait()

    def _encode(self, operation):
        if isinstance(operation, Weights):
            first = (2 * operation.weight_set + operation.is_key) * self.config.code_bits
            matrix = np.asarray(operation.matrix, dtype=np.int8)
            return ({"opcode": "WEIGHTS", "count": len(matrix), "index": first},
                    [row.tobytes() for row in matrix])
        if isinstance(operation, Append):
            return self._encode_append(operation)
        assert isinstance(operation, Query)
        return self._encode_query(operation)

    def _encode_append(self, operation):
        keys, values = pack_row(operation.keys), pack_row(operation.values)
        parts = [keys, values, operation.key_exponents, operation.value_exponents]
        if operation.codes is not None:
            parts.append(little_endian(operation.codes))
        records = np.concatenate([np.asarray(part, dtype=np.uint8) for part in parts], axis=-1)
        return ({"opcode": "APPEND", "context": operation.context, "count": len(keys),
                 "has_code": int(operation.codes is not None)},
                [record.tobytes() for record in records])

    def _encode_query(self, operation):
        config, selection = self.config, operation.selection
        kind = {8: "<i1", 16: "<i2"}[config.query_bits]
        records = [row.astype(kind).tobytes() for row in np.asarray(operation.mantissas)]
        if operation.codes is not None:
            records.append(little_endian(operation.codes).tobytes())
        return {
            "opcode": "QUERY", "context": operation.context,
            "has_code": int(operation.codes is not None),
            "select": int(selection.select),
            "logits_only": int(operation.logits_only), "summaries": int(selection.summaries),
            "want_output": int(operation.want_output), "want_state": int(operation.want_state),
            "visible": operation.visible,
            "full": selection.full, "coarse": selection.coarse, "sink": selection.sink,
            "recent": selection.recent, "minimum": selection.minimum,
            "exponents": [int(exponent) for exponent in operation.exponents],
        }, records

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
        assert len(values) == self.config.head_dim
        maximum = header[0] - ((header[0] >> 31) << 32)
        return maximum, header[1], header[2] | header[3] << 32, values
