"""Append with the block table beside it, as one unit, and scenes for it."""

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from golden.mxint import canonical, pack_row
from golden.summary import page_summaries
from hw.attention.append import Append
from hw.attention.layouts import Error
from hw.attention.paging import Paging, table_entry

__all__ = ["AppendScene", "AppendSystem"]


class AppendSystem(wiring.Component):
    """`Append` and `Paging` wired as in the attention unit.

    Rows wait until ``entries`` block-table entries have been written.
    """

    def __init__(self, config, *, entries):
        self.config = config
        self.entries = entries
        members = {name: member for name, member in Append(config).signature.members.items()
                   if name not in ("paging", "axi")}
        super().__init__({
            "i_entry": In(stream.Signature(table_entry(config))),
            **members,
            "m_axi": Append(config).signature.members["axi"],
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.paging = paging = Paging(self.config)
        m.submodules.append = append = Append(self.config)
        written = Signal(range(self.entries + 1))
        is_open = written == self.entries
        with m.If(self.i_entry.valid & ~is_open):
            m.d.sync += written.eq(written + 1)
        m.d.comb += [
            append.i.payload.eq(self.i.payload),
            append.i.valid.eq(self.i.valid & is_open),
            self.i.ready.eq(append.i.ready & is_open),
        ]
        wiring.connect(m, wiring.flipped(self.i_entry), paging.i_entry)
        wiring.connect(m, append.paging, paging.append)
        wiring.connect(m, append.axi, wiring.flipped(self.m_axi))
        for name in ("o_encode", "i_encoded", "o_code", "o_done"):
            if name in self.signature.members:
                wiring.connect(m, getattr(append, name), wiring.flipped(getattr(self, name)))
        return m


class AppendScene:
    """Contexts in a memory, commands that append to them, and all that must come of it.

    Parameters
    ----------
    config : AttentionConfig
    memory : bytearray
        The memory before; ``expected`` is what it must hold in the end.
    seed : int
    """

    def __init__(self, config, memory, *, seed):
        self.config = config
        self.rng = np.random.default_rng(seed)
        self.expected = bytearray(memory)
        size, row = len(memory), config.row_bytes
        pages = size // (8 * 16 * row)
        self.table = self.rng.permutation(pages)[:config.table_pages].tolist()
        self.context_pages = len(self.table) // config.contexts
        quarter = size // 4
        self.entries = [{
            "code_line": 16 * self.context_pages * context // config.lanes,
            "code_address": 3 * quarter + context * self.code_region,
            "table_base": context * self.context_pages,
            "key_base": 0, "key_limit": quarter, "value_base": quarter,
            "value_limit": 2 * quarter, "summary_base": 2 * quarter, "summary_limit": 3 * quarter,
            "key_page_stride": 16 * row, "key_row_stride": row,
            "value_page_stride": 16 * row, "value_row_stride": row,
            "summary_page_stride": 2 * row, "weight_set": context,
        } for context in range(config.contexts)]
        self.lengths = [0] * config.contexts
        self.pages = [([], []) for _ in range(config.contexts)]
        self.write_faults = []
        self.rows, self.requests, self.encoded, self.codes, self.done = [], [], [], [], []

    @property
    def code_region(self):
        return 16 * self.context_pages // self.config.lanes * self.config.code_line_bytes

    @property
    def table_writes(self):
        return [{"index": index, "page": page} for index, page in enumerate(self.table)]

    def command(self, context, count, *, has_code=False, error=Error.NONE, error_at=None):
        """Append tokens; ``error`` comes with row ``error_at``, which is then the last."""
        config, rng, entry = self.config, self.rng, self.entries[context]
        shape = (count, 2, config.blocks)
        mantissas = rng.integers(-128, 128, (count, 2, config.head_dim))
        mantissas[rng.random(count) < 0.1] = 0
        given = rng.integers(120, 135, shape)
        exponents = canonical(mantissas, given)
        failure, wrote_badly = Error.NONE, False
        saved = tuple(list(part) for part in self.pages[context])
        for index in range(count):
            position = self.lengths[context] + index
            code = int.from_bytes(rng.bytes(config.code_bits // 8), "little")
            is_bad = index == error_at
            last = is_bad or index == count - 1
            stored = [pack_row(mantissas[index, side]).tobytes() for side in range(2)]
            self.rows.append({
                "error": error if is_bad else Error.NONE, "context": context,
                "position": position, "last": int(last), "has_code": int(has_code),
                "code": code if has_code else 0, "entry": entry,
                "key": int.from_bytes(stored[0], "little"),
                "value": int.from_bytes(stored[1], "little"),
                "keys": given[index, 0].tolist(), "values": given[index, 1].tolist()})
            if failure == Error.NONE:
                failure = error if is_bad else self._window(entry, position)
            if failure == Error.NONE:
                wrote_badly |= self._store(context, position, mantissas[index], exponents[index],
                                           stored, code, has_code)
            if last:
                break
        if failure == Error.NONE and wrote_badly:
            failure = Error.WRITE
        self.done.append({"error": failure})
        if failure == Error.NONE:
            self.lengths[context] += count
        else:
            self.pages[context] = saved

    def addresses(self, entry, position):
        """Of the key row, the value row, and the summary rows of the page."""
        page = self.table[entry["table_base"] + position // 16]
        rows = [entry[f"{side}_base"] + page * entry[f"{side}_page_stride"]
                + position % 16 * entry[f"{side}_row_stride"] for side in ("key", "value")]
        summary = entry["summary_base"] + page * entry["summary_page_stride"]
        return [*rows, summary, summary + self.config.row_bytes]

    def _window(self, entry, position):
        limits = [entry["key_limit"], entry["value_limit"]]
        if position % 16 == 15 and entry["summary_limit"]:
            limits += [entry["summary_limit"]] * 2
        outside = any(address + self.config.row_bytes > limit for address, limit in zip(
            self.addresses(entry, position), limits, strict=False))
        return Error.WINDOW if outside else Error.NONE

    def _store(self, context, position, mantissas, exponents, stored, code, has_code):
        """Note all that must come of a token; whether a write of it fails."""
        config, entry = self.config, self.entries[context]
        page = self.pages[context]
        if position % 16 == 0:
            page[0].clear()
            page[1].clear()
        page[0].append(mantissas)
        page[1].append(exponents)
        addresses = self.addresses(entry, position)
        writes = list(zip(addresses, stored, strict=False))
        if position % 16 == 15 and entry["summary_limit"]:
            for side in range(2):
                mean, _ = page_summaries(np.array(page[0])[:, side], np.array(page[1])[:, side])
                writes.append((addresses[2 + side], pack_row(mean[0]).tobytes()))
        if not has_code:
            self.requests.append({
                "is_key": 1, "weight_set": entry["weight_set"], "vector": mantissas[0].tolist(),
                "exponents": exponents[0].tolist()})
            self.encoded.append(code)
        line, lane = divmod(position, config.lanes)
        if config.code_source == "resident":
            largest = np.max(page[1], axis=0)
            self.codes.append({
                "line": entry["code_line"] + line, "lane": lane, "code": code,
                "keys": exponents[0].tolist(), "values": exponents[1].tolist(),
                "page": entry["code_line"] * config.lanes // 16 + position // 16,
                "page_keys": largest[0].tolist(), "page_values": largest[1].tolist()})
        else:
            base = entry["code_address"] + line * config.code_line_bytes
            code_bytes = config.code_bits // 8
            writes += [
                (base + lane * code_bytes, code.to_bytes(code_bytes, "little")),
                (base + config.lanes * code_bytes + lane * config.exponent_bytes,
                 exponents.tobytes())]
        failures = [self._write(address, part) for address, part in writes]
        return any(failures)

    def _write(self, address, part):
        if any(low <= address < high for low, high in self.write_faults):
            return True
        self.expected[address:address + len(part)] = part
        return False
