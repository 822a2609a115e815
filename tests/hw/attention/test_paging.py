import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import context_entry
from hw.attention.paging import Paging, assign_lookup, row_lookup
from hw.config import AttentionConfig
from hw.presets import PRESETS
from tests.hw.harness import run_stream_test

TINY = PRESETS["tiny"].attention


def expected_place(config, table, lookup):
    index = lookup["table_base"] + lookup["page"]
    if index >= config.table_pages:
        return {"fault": 1}
    address = (lookup["base"] + table[index] * lookup["page_stride"]
               + lookup["slot"] * lookup["row_stride"])
    if address + config.row_bytes > lookup["limit"] or address % config.row_bytes:
        return {"fault": 1}
    return {"address": address, "fault": 0}


def known(place):
    """What a client may use of an answer."""
    return {"fault": 1} if place["fault"] else place


def random_lookup(config, rng, table):
    row = config.row_bytes
    top = 1 << config.address_bits
    page = rng.randrange(min(config.max_pages, config.table_pages))
    lookup = {
        "table_base": rng.choice([0, 3, config.table_pages - 1 - page]),
        "page": page,
        "slot": rng.randrange(16),
        "base": rng.randrange(0, 1 << 20, row),
        "page_stride": rng.choice([0, 16 * row, 64 * row, 0xFFFFFFFF // row * row]),
        "row_stride": rng.choice([0, row, 3 * row]),
    }
    index = lookup["table_base"] + page
    end = (lookup["base"] + table[index % config.table_pages] * lookup["page_stride"]
           + lookup["slot"] * lookup["row_stride"] + row)
    # Limits at, just below and above the row's end; and ends that do not fit an address.
    lookup["limit"] = rng.choice([end, end - 1, end - row, end + row, top - 1, 0, row - 1])
    if not 0 <= lookup["limit"] < top:
        lookup["limit"] = top - 1
    fault = rng.random()
    if fault < 0.1:
        lookup["base"] += rng.choice([1, row // 2])
    elif fault < 0.2:
        lookup["table_base"] = config.table_pages - page
    elif fault < 0.25:
        lookup["base"] = top - row
    return lookup


class Preloaded(wiring.Component):
    """A `Paging` that takes its lookups once ``count`` entries have been written."""

    def __init__(self, config, count):
        self.paging = Paging(config)
        self.count = count
        super().__init__(self.paging.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.paging = paging = self.paging
        wiring.connect(m, wiring.flipped(self.i_entry), paging.i_entry)
        written = Signal(range(self.count + 1))
        m.d.sync += written.eq(written + (self.i_entry.valid & self.i_entry.ready))
        for name in ("fetch", "append"):
            outer, inner = getattr(self, name), getattr(paging, name)
            wiring.connect(m, inner.place, wiring.flipped(outer.place))
            m.d.comb += [
                inner.lookup.payload.eq(outer.lookup.payload),
                inner.lookup.valid.eq(outer.lookup.valid & (written == self.count)),
                outer.lookup.ready.eq(inner.lookup.ready & (written == self.count)),
            ]
        return m


def run(config, table, lookups, **options):
    entries = [{"index": index, "page": page} for index, page in enumerate(table)]
    return run_stream_test(
        Preloaded(config, len(table)),
        feeds={"i_entry": entries, "fetch.lookup": lookups[0], "append.lookup": lookups[1]},
        sinks={"fetch.place": len(lookups[0]), "append.place": len(lookups[1])}, **options)


@pytest.mark.parametrize("config", [
    TINY,
    AttentionConfig(head_dim=128, code_bits=32, lanes=4, max_tokens=512, memory_bytes=64,
                    table_pages=20, address_bits=64),
    AttentionConfig(head_dim=32, code_bits=32, lanes=4, max_tokens=1 << 20, memory_bytes=4,
                    table_pages=300, address_bits=24),
], ids=["tiny", "wide", "narrow"])
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_addresses_and_faults(config, stall):
    rng = random.Random(config.address_bits)
    table = [rng.choice([0, 1, rng.randrange(1 << 10), (1 << 24) - 1])
             for _ in range(config.table_pages)]
    lookups = [[random_lookup(config, rng, table) for _ in range(200)] for _ in range(2)]
    result = run(config, table, lookups, seed=1, stall_probability=stall)
    for client, name in enumerate(("fetch", "append")):
        expected = [expected_place(config, table, lookup) for lookup in lookups[client]]
        assert [known(place) for place in result.outputs[f"{name}.place"]] == expected
        assert 20 < sum(place["fault"] for place in expected) < 180


def test_latency_and_throughput():
    table = [7, 5]
    lookup = {"page": 1, "slot": 3, "base": 0x1000, "limit": 0xFFFF, "page_stride": 1024,
              "row_stride": 32}
    place = {"address": 0x1000 + 5 * 1024 + 96, "fault": 0}
    result = run(TINY, table, [[lookup] * 50, []], seed=0)
    cycles = result.input_cycles["fetch.lookup"]
    assert cycles == list(range(cycles[0], cycles[0] + 50))
    assert result.output_cycles["fetch.place"] == [cycle + 5 for cycle in cycles]
    assert result.outputs["fetch.place"] == [place] * 50


def test_clients_share_the_pipeline_in_turn():
    lookups = [[{"limit": 64, "slot": n % 2, "row_stride": 32} for n in range(20)]] * 2
    result = run(TINY, [0, 0], lookups, seed=0)
    fetch, append = result.input_cycles["fetch.lookup"], result.input_cycles["append.lookup"]
    assert fetch == list(range(fetch[0], fetch[0] + 40, 2))
    assert append == [cycle + 1 for cycle in fetch]


def test_a_client_that_does_not_listen_holds_up_only_itself():
    dut = Preloaded(TINY, 1)
    lookup = {"limit": 64}
    with pytest.raises(TimeoutError, match="append.lookup took 8 of 20$"):
        run_stream_test(dut, feeds={"i_entry": [{}], "fetch.lookup": [lookup] * 20,
                                    "append.lookup": [lookup] * 20},
                        sinks={"fetch.place": 20}, seed=0, timeout_cycles=100)


class Assigned(wiring.Component):
    """The statements of `assign_lookup` as a unit."""

    def __init__(self, config):
        self.config = config
        item = data.StructLayout({"entry": context_entry(config), "position": config.position_bits,
                                  "is_value": 1, "is_summary": 1})
        super().__init__({"i": In(stream.Signature(item)),
                          "o": Out(stream.Signature(row_lookup(config)))})

    def elaborate(self, platform):
        m = Module()
        item = self.i.payload
        m.d.comb += [
            *assign_lookup(self.config, self.o.payload, item.entry, position=item.position,
                           is_value=item.is_value, is_summary=item.is_summary),
            self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready)]
        return m


def test_each_row_is_looked_up_in_its_region():
    entry = {"table_base": 9,
             "key_base": 1, "key_limit": 2, "key_page_stride": 3, "key_row_stride": 4,
             "value_base": 5, "value_limit": 6, "value_page_stride": 7, "value_row_stride": 8,
             "summary_base": 10, "summary_limit": 11, "summary_page_stride": 12}
    items = [{"entry": entry, "position": 0x123, "is_value": value, "is_summary": summary}
             for summary in (0, 1) for value in (0, 1)]
    result = run_stream_test(Assigned(TINY), feeds={"i": items}, sinks={"o": 4}, seed=0)
    names = ("base", "limit", "page_stride", "row_stride", "slot")
    assert [[lookup[name] for name in names] for lookup in result.outputs["o"]] == [
        [1, 2, 3, 4, 3], [5, 6, 7, 8, 3], [10, 11, 12, 32, 0], [10, 11, 12, 32, 1]]
    assert all(lookup["table_base"] == 9 and lookup["page"] == 0x12
               for lookup in result.outputs["o"])


def test_refuses_what_is_no_config():
    with pytest.raises(TypeError, match="^Paging config must be an AttentionConfig, not 'tiny'$"):
        Paging("tiny")
