"""Canonical codes: limits, offsets and the order of symbols."""

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from golden.streaming.huffman import decode_table, is_complete, pack_table
from hw.streaming.huffman.tables import CodeSwitch, CodeTable
from tests.hw.streaming.coded import complete_lengths


def build(dut, tables, *, gap=0):
    """Build tables of (bits, lengths) one after the other.

    Returns
    -------
    list of (is_good, decode, cycles)
        ``decode``: symbol less 2**(b - 1) and length for each 12-bit window, its first bit in bit
        0; None if it is not good.
    """
    found = []

    async def run(ctx):
        for bits, lengths in tables:
            words = pack_table(lengths).tobytes().ljust(64 if bits < 8 else 128, b"\xff")
            ctx.set(dut.last_symbol, (1 << bits) - 1)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            elements, cycles, at, wait = {}, 1, 0, 0
            while not (ctx.get(dut.ready) and at == len(words)):
                gives = at < len(words) and wait == 0
                if gives:
                    ctx.set(dut.word, int.from_bytes(words[at:at + 8], "little"))
                    at += 8
                ctx.set(dut.word_enable, gives)
                wait = gap if gives else max(0, wait - 1)
                cycles += not ctx.get(dut.ready)
                await ctx.tick()
                if ctx.get(dut.place_enable):
                    elements[ctx.get(dut.rank)] = ctx.get(dut.element)
            ctx.set(dut.word_enable, 0)
            is_good = ctx.get(dut.is_good)
            found.append((is_good, decoder(ctx, dut, elements) if is_good else None, cycles))

    def decoder(ctx, dut, elements):
        limits = [ctx.get(dut.code.limits[f"of_{n}"]) for n in range(1, 12)]
        offsets = [ctx.get(offset) for offset in dut.code.offsets]
        table = []
        for window in range(4096):
            first_first = int(f"{window:012b}"[::-1], 2)
            length = 1 + sum(limit <= first_first >> (12 - n)
                             for n, limit in enumerate(limits, start=1))
            rank = ((first_first >> (12 - length)) + offsets[length - 1]) % (1 << dut.symbol_bits)
            table.append((elements[rank], length))
        return table

    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(run)
    simulator.run()
    return found


def check(tables, results):
    for (bits, lengths), (is_good, table, _) in zip(tables, results, strict=True):
        assert is_good == is_complete(lengths)
        if is_good:
            symbols, used = decode_table(lengths)
            half = 1 << (bits - 1)
            assert table == [(int(symbol) - half, int(length))
                             for symbol, length in zip(symbols, used, strict=True)]


@pytest.mark.parametrize("gap", [0, 20])
def test_codes_and_what_is_none(gap):
    """One after the other in the same unit; each of the wrong ones is one step from a right one."""
    rng = np.random.default_rng(gap)
    tables = []
    for bits in (2, 8, 3, 5, 7, 4, 6, 2):
        lengths = complete_lengths(bits, rng)
        longer, more, fewer = lengths.copy(), lengths.copy(), lengths.copy()
        used = np.flatnonzero(lengths)
        longer[used[0]] += 1
        fewer[used[-1]] = 0
        more[used[0]] -= 1
        too_long = lengths.copy()
        too_long[used[0]] = 13
        tables += [(bits, lengths), (bits, longer), (bits, more), (bits, fewer), (bits, too_long)]
    # The sums of these run far beyond 1, and beyond any multiple of it.
    tables += [(8, np.ones(256, np.int64)), (8, np.zeros(256, np.int64)),
               (3, np.full(8, 15)), (8, np.full(256, 8))]
    results = build(CodeTable(symbol_bits=8), tables, gap=gap)
    check(tables, results)
    assert 8 < sum(bool(is_good) for is_good, _, _ in results) < 20


def test_latency():
    tables = [(bits, complete_lengths(bits, np.random.default_rng(bits))) for bits in (2, 5, 7)]
    results = build(CodeTable(symbol_bits=7), tables)
    assert [cycles for _, _, cycles in results] == [CodeTable.latency(bits) for bits in (2, 5, 7)]


def test_a_table_given_up():
    """A start in the middle of another table leaves nothing of it."""
    rng = np.random.default_rng(4)
    dut = CodeTable(symbol_bits=4)
    right = complete_lengths(4, rng)
    result = []

    async def run(ctx):
        ctx.set(dut.last_symbol, 15)
        for cycles in (*range(1, 70), None):
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.word, int.from_bytes(pack_table(right).tobytes(), "little"))
            ctx.set(dut.word_enable, 1)
            await ctx.tick()
            ctx.set(dut.word_enable, 0)
            for _ in range(cycles or 0):
                await ctx.tick()
            if cycles is None or cycles > 66:
                while not ctx.get(dut.ready):
                    await ctx.tick()
                result.append(ctx.get(dut.is_good))

    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(run)
    simulator.run()
    assert result == [1] * 4


def test_switch():
    dut = CodeSwitch(symbol_bits=3)
    seen = []

    async def run(ctx):
        ctx.set(dut.key.limits.of_3, 5)
        ctx.set(dut.value.limits.of_3, 6)
        ctx.set(dut.key.offsets[11], 1)
        ctx.set(dut.value.offsets[11], 2)
        for takes, swaps in ((1, 0), (0, 1), (0, 0), (0, 1), (0, 1), (1, 1), (0, 0)):
            ctx.set(dut.takes, takes)
            ctx.set(dut.swaps, swaps)
            await ctx.tick()
            seen.append((ctx.get(dut.code.limits.of_3), ctx.get(dut.code.offsets[11])))

    top = Module()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(run)
    simulator.run()
    # Offsets follow a cycle later.
    assert [limit for limit, _ in seen] == [5, 6, 6, 5, 6, 5, 5]
    assert [offset for _, offset in seen] == [0, 1, 2, 2, 1, 2, 1]


@pytest.mark.parametrize("unit", [CodeTable, CodeSwitch])
def test_symbols_it_is_for(unit):
    with pytest.raises(ValueError, match=f"{unit.__name__} symbol_bits must be at most 8, not 9"):
        unit(symbol_bits=9)
