"""The whole unit in Amaranth's simulator: encode, append, one query, equal to golden."""

from dataclasses import replace

import numpy as np

from golden.selection import Select, Selection
from hw.attention.layouts import Opcode, ResultKind
from hw.attention.layouts import Select as SelectField
from hw.attention.register_map import ENTRY_FIELDS, address_of
from hw.attention.unit import AttentionUnit
from hw.presets import PRESETS
from sim.attention import Context, Table
from sim.attention.encoding import encode
from sim.attention.layout import place
from sim.attention.random_work import random_append, random_query, weights
from sim.attention.twin import expected_results
from tests.hw.harness import run_stream_test
from tests.hw.memory_model import MemoryModel

TOKENS = 20


def register_writes(operations):
    """The register writes that enter a table and contexts."""
    for operation in operations:
        if isinstance(operation, Table):
            yield "table_index", operation.base
            yield from (("table_page", page) for page in operation.pages)
        elif isinstance(operation, Context):
            yield "context_index", operation.index
            for name, is_address in ENTRY_FIELDS:
                value = operation.entry.get(name, 0)
                yield f"entry_{name}", value & 0xFFFFFFFF
                if is_address:
                    yield f"entry_{name}_high", value >> 32
            yield "context_enter", 1


def write_registers(bus, writes):
    async def write(ctx):
        ctx.set(bus.b.ready, 1)
        for name, value in writes:
            ctx.set(bus.aw.payload, {"addr": address_of(name)})
            ctx.set(bus.w.payload, {"data": value, "strb": 15})
            ctx.set(bus.aw.valid, 1)
            ctx.set(bus.w.valid, 1)
            while True:
                _, _, taken = await ctx.tick().sample(bus.w.ready)
                if taken:
                    break
            ctx.set(bus.aw.valid, 0)
            ctx.set(bus.w.valid, 0)
            while True:
                _, _, answered, answer = await ctx.tick().sample(bus.b.valid, bus.b.payload)
                if answered:
                    assert answer.resp.value == 0, name
                    break
    return write


def to_fields(fields):
    """Enum fields by member, as the harness takes them."""
    enums = {"opcode": lambda name: Opcode[name], "select": SelectField}
    return {name: enums[name](value) if name in enums else value
            for name, value in fields.items()}


def test_one_query_end_to_end():
    config = replace(PRESETS["tiny"].attention, max_tokens=256, resident_tokens=256, table_pages=16)
    rng = np.random.default_rng(5)
    placement = place(config, [TOKENS], seed=5)
    selection = Selection(select=Select.BUDGET, full=3, coarse=5, summaries=True)
    # The weights come first: meanwhile the context is entered.
    commands = [*weights(config), random_append(config, rng, 0, TOKENS),
                random_query(config, rng, 0, TOKENS, selection=selection, visible=0, codes=None,
                             logits_only=False, want_state=False, want_output=True)]
    expected = expected_results(config, [*placement.operations, *commands])[-1]
    encoded = [encode(config, command) for command in commands]

    dut = AttentionUnit(config)
    memory = MemoryModel(size=placement.memory_size, latency=6, shuffle=True, seed=5)
    output_beats = config.head_dim // config.result_lanes
    result = run_stream_test(
        dut,
        feeds={
            "i_command": [to_fields({"tag": tag, **fields})
                          for tag, (fields, _) in enumerate(encoded)],
            "i_data": [beat for _, beats in encoded for beat in beats],
        },
        sinks={"o_result": len(commands) + output_beats},
        seed=5,
        testbenches=[
            memory.serve_axi_reads(dut.m_axi), memory.serve_axi_writes(dut.m_axi),
            write_registers(dut.s_axil, register_writes(placement.operations)),
        ],
        timeout_cycles=4000,
    )

    beats = result.outputs["o_result"]
    statuses = [beat for beat in beats if beat["kind"] == ResultKind.STATUS]
    assert [beat["tag"] for beat in statuses] == list(range(len(commands)))
    assert all(beat["words"][0] & 15 == 0 for beat in statuses)
    assert statuses[-1]["words"][1:4] == [expected.full, expected.coarse, expected.summaries]
    assert statuses[-1]["words"][0] >> 8 == expected.beats
    words = [word for beat in beats if beat["kind"] == ResultKind.OUTPUT for word in beat["words"]]
    assert words == expected.outputs[0].tolist()
