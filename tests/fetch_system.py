"""Fetch with what it needs around it, as one unit: the block table and the bus."""

import random
from enum import Enum

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.fetch import Fetch
from hw.attention.layouts import Error, Kind
from hw.attention.paging import Paging, table_entry
from hw.bus import axi4
from hw.bus.read_mux import ReadMux

__all__ = ["FetchSystem", "Scene", "plain"]


def plain(value):
    """Integers in place of the enum members in a nested value, as cocotb benches use them."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


class FetchSystem(wiring.Component):
    """`Fetch`, `Paging` and `ReadMux` wired as in the attention unit.

    Jobs wait until ``entries`` block-table entries have been written.
    """

    def __init__(self, config, *, entries):
        self.config = config
        self.entries = entries
        fetch = Fetch(config).signature.members
        super().__init__({
            "i_entry": In(stream.Signature(table_entry(config))),
            **{name: fetch[name] for name in
               ("i_job", "i_token", "o_key", "o_value", "o_status")},
            "m_axi": Out(axi4.ReadSignature(config.address_bits, config.memory_bytes, 1)),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.paging = paging = Paging(config)
        m.submodules.fetch = fetch = Fetch(config)
        m.submodules.mux = mux = ReadMux(
            address_bits=config.address_bits, data_bytes=config.memory_bytes, ports=2)
        wiring.connect(m, wiring.flipped(self.i_entry), paging.i_entry)
        written = Signal(range(self.entries + 1))
        with m.If(self.i_entry.valid & (written != self.entries)):
            m.d.sync += written.eq(written + 1)
        m.d.comb += [
            fetch.i_job.payload.eq(self.i_job.payload),
            fetch.i_job.valid.eq(self.i_job.valid & (written == self.entries)),
            self.i_job.ready.eq(fetch.i_job.ready & (written == self.entries)),
        ]
        wiring.connect(m, wiring.flipped(self.i_token), fetch.i_token)
        wiring.connect(m, fetch.paging, paging.fetch)
        wiring.connect(m, fetch.bus_key, mux.port[0])
        wiring.connect(m, fetch.bus_value, mux.port[1])
        wiring.connect(m, mux.axi, wiring.flipped(self.m_axi))
        wiring.connect(m, fetch.o_key, wiring.flipped(self.o_key))
        wiring.connect(m, fetch.o_value, wiring.flipped(self.o_value))
        wiring.connect(m, fetch.o_status, wiring.flipped(self.o_status))
        return m


class Scene:
    """A memory with two contexts in it, queries on them, and what must come out.

    Everything is plain integers, dicts and lists, for the harness of the Amaranth simulator and for
    cocotb alike.

    Parameters
    ----------
    config : AttentionConfig
    seed : int
    size : int
        Bytes of the memory.
    """

    def __init__(self, config, *, seed, size=1 << 16):
        self.config = config
        self.rng = random.Random(seed)
        self.memory = self.rng.randbytes(size)
        row = config.row_bytes
        pages = size // (4 * 16 * row)
        self.table = self.rng.sample(range(pages), min(pages, config.table_pages))
        half = len(self.table) // 2
        regions = {"key": 0, "value": size // 4, "summary": size // 2}
        interleaved = {
            # Keys and values of a token side by side, and all pages in one region.
            "key_base": size // 2, "key_row_stride": 2 * row, "key_page_stride": 32 * row,
            "value_base": size // 2 + row, "value_row_stride": 2 * row,
            "value_page_stride": 32 * row,
            "summary_base": 0, "summary_page_stride": 2 * row,
            "key_limit": size, "value_limit": size, "summary_limit": size // 4,
            "table_base": half,
        }
        apart = {"table_base": 0}
        for name, base in regions.items():
            apart |= {f"{name}_base": base, f"{name}_limit": base + size // 4,
                      f"{name}_page_stride": 16 * row}
        apart |= {"key_row_stride": row, "value_row_stride": row}
        self.entries = [apart, interleaved]
        self.context_pages = min(half, config.max_pages)
        self.faults = []
        self.jobs, self.tokens = [], []
        self.keys, self.values, self.statuses = [], [], []

    @property
    def table_writes(self):
        return [{"index": index, "page": page} for index, page in enumerate(self.table)]

    def add_fault(self, low, high, error):
        """Expect an error of rows that start in ``low <= address < high``, and any data."""
        self.faults.append((low, high, error))

    def add_query(self, rows, *, slot=0, logits_only=0, context=0, kinds=None):
        """Add a query over ``rows`` random tokens and summaries, and END."""
        config, rng = self.config, self.rng
        entry = self.entries[context]
        self.jobs.append({"slot": slot, "logits_only": logits_only, "entry": entry})
        errors, beats = set(), 0
        for _ in range(rows):
            kind = rng.choice(kinds or [Kind.FULL, Kind.COARSE, Kind.SUMMARY])
            position = rng.randrange(16 * self.context_pages)
            token = {
                "kind": kind, "position": position, "weight": rng.randrange(1, 17),
                "keys": [rng.randrange(255) for _ in range(config.blocks)],
                "values": [rng.randrange(255) for _ in range(config.blocks)],
            }
            self.tokens.append(token)
            sides = [("key", "keys", self.keys)]
            if not logits_only:
                sides.append(("value", "values", self.values))
            for side, exponents, output in sides:
                address = self.address(entry, kind, position, side)
                header = {"kind": kind, "slot": slot, "logits_only": logits_only,
                          "weight": token["weight"], "position": position,
                          "exponents": token[exponents]}
                if address + config.row_bytes > entry[
                        f"{'summary' if kind == Kind.SUMMARY else side}_limit"]:
                    errors.add(Error.WINDOW)
                    address = None
                else:
                    beats += (config.coarse_beats if kind == Kind.COARSE else config.full_beats)
                    hits = {error for low, high, error in self.faults if low <= address < high}
                    errors |= hits
                    address = None if hits else address
                output += self._row_beats(header, address)
        self.tokens.append({"kind": Kind.END})
        end = {"kind": Kind.END, "slot": slot, "logits_only": logits_only, "weight": 0,
               "position": 0, "exponents": [0] * config.blocks, "data": 0, "last": 1}
        self.keys.append(end)
        self.values.append(end)
        self.statuses.append({
            "error": min(errors, key=lambda code: code.value, default=Error.NONE), "beats": beats})

    def address(self, entry, kind, position, side):
        page = self.table[entry["table_base"] + position // 16]
        if kind == Kind.SUMMARY:
            return (entry["summary_base"] + page * entry["summary_page_stride"]
                    + (self.config.row_bytes if side == "value" else 0))
        return (entry[f"{side}_base"] + page * entry[f"{side}_page_stride"]
                + position % 16 * entry[f"{side}_row_stride"])

    def _row_beats(self, header, address):
        config = self.config
        size = config.beat_bytes
        count = 1 if header["kind"] == Kind.COARSE else 2 // config.planes_per_beat
        data = [None if address is None else
                int.from_bytes(self.memory[address + n * size:address + (n + 1) * size], "little")
                for n in range(count)]
        return [{**header, "data": word, "last": int(n == count - 1)}
                for n, word in enumerate(data)]

    @staticmethod
    def matches(expected, beats):
        """Whether beats are as expected, but for the data of rows that met a fault."""
        return len(expected) == len(beats) and all(
            {**beat, "data": None} == wanted if wanted["data"] is None else beat == wanted
            for wanted, beat in zip(expected, beats, strict=True))
