"""Canonical codes from the lengths of their code words."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.checks import check_int
from hw.streaming.huffman.geometry import LONGEST, WORD_BITS, code_table

__all__ = ["CodeSwitch", "CodeTable"]

_LENGTH_BITS = 4
_PER_WORD = WORD_BITS // _LENGTH_BITS
_TALLIES = 1 << _LENGTH_BITS


class _State(enum.Enum, shape=3):
    CLEAR = 0
    COUNT = 1
    STEP = 2
    PLACE = 3
    READY = 4


class CodeTable(wiring.Component):
    """Builds the code of one table.

    Symbols are counted by length, the counts turned into limits and offsets, then each symbol is
    placed behind those of lower rank. Counting and placing walk the symbols in the same way, for
    both add one to the tally of the symbol's length.

    **Latency**: 2 * 2**b + 31 cycles (`latency`) from ``start`` to ``ready``, if the words come as
    fast as they are counted.

    **Throughput**: a table at a time.

    **Numerics**: ``golden.streaming.huffman.decode_table``; ``is_good`` is
    ``golden.streaming.huffman.is_complete``.

    **Errors**: ``is_good`` low.

    Parameters
    ----------
    symbol_bits : int
        Width of the widest symbol: 2..8.

    Members
    -------
    start : ``In(1)``
        Forget everything: the words of another table follow.
    last_symbol : ``In(symbol_bits)``
        2**b - 1; holds while the table is built.
    word_enable : ``In(1)``
        A word of the table; they come in order. Words past the last symbol may be given, too.
    word : ``In(64)``
        Its 16 lengths.
    ready : ``Out(1)``
        The code is there, and stays until ``start``.
    is_good : ``Out(1)``
        The code is complete.
    code : ``Out(code_table(symbol_bits))``
    place_enable : ``Out(1)``
        A symbol takes its place in the order of code words.
    rank : ``Out(symbol_bits)``
        Its place.
    element : ``Out(signed(symbol_bits))``
        The integer that it stands for.
    """

    def __init__(self, *, symbol_bits):
        self._symbol_bits = check_int("CodeTable symbol_bits", symbol_bits, minimum=2, maximum=8)
        super().__init__({
            "start": In(1),
            "last_symbol": In(symbol_bits),
            "word_enable": In(1),
            "word": In(WORD_BITS),
            "ready": Out(1),
            "is_good": Out(1),
            "code": Out(code_table(symbol_bits)),
            "place_enable": Out(1),
            "rank": Out(symbol_bits),
            "element": Out(signed(symbol_bits)),
        })

    @property
    def symbol_bits(self):
        return self._symbol_bits

    @staticmethod
    def latency(bits):
        """Cycles for symbols of ``bits`` bits."""
        return 1 + _TALLIES + LONGEST + 2 * ((1 << bits) + 1)

    def elaborate(self, platform):
        m = Module()
        state, level = Signal(_State), Signal(_LENGTH_BITS)
        scans, steps = Signal(), Signal()
        m.d.comb += [
            scans.eq((state == _State.COUNT) | (state == _State.PLACE)),
            steps.eq(state == _State.STEP),
            self.ready.eq(state == _State.READY),
        ]
        length, symbol, counts, ends = self._scan(m, scans)
        tally, rank = self._tally(m, Mux(scans, length, level), counts, scans=scans, steps=steps)
        self._step(m, steps, level, tally, rank)
        with m.Switch(state):
            with m.Case(_State.CLEAR):
                m.d.sync += [level.eq(level + 1), self.is_good.eq(1)]
                with m.If(level == _TALLIES - 1):
                    m.d.sync += state.eq(_State.COUNT)
            with m.Case(_State.COUNT):
                with m.If(counts & (length > LONGEST)):
                    m.d.sync += self.is_good.eq(0)
                with m.If(ends):
                    m.d.sync += [state.eq(_State.STEP), level.eq(1)]
            with m.Case(_State.STEP):
                m.d.sync += level.eq(level + 1)
                with m.If(level == LONGEST):
                    m.d.sync += state.eq(_State.PLACE)
            with m.Case(_State.PLACE):
                with m.If(ends):
                    m.d.sync += state.eq(_State.READY)
        with m.If(self.start):
            m.d.sync += [state.eq(_State.CLEAR), level.eq(0)]

        half = self.last_symbol - (self.last_symbol >> 1)
        m.d.sync += [
            self.place_enable.eq(counts & (state == _State.PLACE)),
            self.rank.eq(tally),
            self.element.eq(symbol - half),
        ]
        return m

    def _scan(self, m, scans):
        """Walk the symbols while ``scans`` is high: each comes out with the length of its code.

        Returns
        -------
        (length, symbol, counts, ends)
            ``counts``: it has a code; ``ends``: it is the last one.
        """
        depth = max(2, (1 << self.symbol_bits) // _PER_WORD)
        m.submodules.words = words = Memory(shape=WORD_BITS, depth=depth, init=[])
        write, read = words.write_port(), words.read_port(domain="comb")
        taken = Signal(range(depth + 1))
        following = Signal(self.symbol_bits + 1)
        length, symbol = Signal(_LENGTH_BITS), Signal(self.symbol_bits)
        is_there, counts, ends = Signal(), Signal(), Signal()
        lane_bits = (_PER_WORD - 1).bit_length()
        moves = scans & (following <= self.last_symbol) & ((following >> lane_bits) < taken)
        m.d.comb += [
            write.addr.eq(taken),
            write.data.eq(self.word),
            write.en.eq(self.word_enable & (taken != depth)),
            read.addr.eq(following >> lane_bits),
            ends.eq(is_there & (symbol == self.last_symbol)),
            counts.eq(is_there & length.any()),
        ]
        m.d.sync += [
            taken.eq(taken + write.en),
            following.eq(following + moves),
            is_there.eq(moves),
            length.eq(read.data.word_select(following[:lane_bits], _LENGTH_BITS)),
            symbol.eq(following),
        ]
        with m.If(ends):
            m.d.sync += following.eq(0)
        with m.If(self.start):
            m.d.sync += [taken.eq(0), following.eq(0), is_there.eq(0)]
        return length, symbol, counts, ends

    def _tally(self, m, length, counts, *, scans, steps):
        """Symbols of each length; in the step, they give way to the rank of the first of them.

        Returns
        -------
        (tally, rank)
            Those of ``length``.
        """
        m.submodules.tallies = tallies = Memory(
            shape=self.symbol_bits + 1, depth=_TALLIES, init=[])
        write, read = tallies.write_port(), tallies.read_port(domain="comb")
        rank = Signal(self.symbol_bits + 1)
        m.d.comb += [
            read.addr.eq(length),
            write.addr.eq(length),
            write.en.eq(~scans | counts),
            write.data.eq(Mux(scans, read.data + 1, Mux(steps, rank, 0))),
        ]
        m.d.sync += rank.eq(Mux(steps, rank + read.data, 0))
        return read.data, rank

    def _step(self, m, steps, level, count, rank):
        """Limit and offset of a length; the code is complete if none is left beyond the last."""
        first = Signal(self.symbol_bits + LONGEST)
        limit = Signal(self.symbol_bits + LONGEST)
        m.d.comb += limit.eq(first + count)
        m.d.sync += first.eq(Mux(steps, limit << 1, 0))
        with m.If(steps), m.Switch(level):
            for length in range(1, LONGEST + 1):
                with m.Case(length):
                    m.d.sync += self.code.offsets[length - 1].eq(rank - first)
                    if length < LONGEST:
                        m.d.sync += self.code.limits[f"of_{length}"].eq(limit)
                    else:
                        m.d.sync += self.is_good.eq(self.is_good & (limit == 1 << LONGEST))


class CodeSwitch(wiring.Component):
    """Holds the two codes of the frame that is decoded, and selects that of the row.

    **Latency**: 1 cycle; 1 more for the offsets, which are used behind the limits.

    **Throughput**: a change per cycle.

    **Numerics**: none.

    **Errors**: none.

    Parameters
    ----------
    symbol_bits : int
        Width of the widest symbol: 2..8.

    Members
    -------
    takes : ``In(1)``
        Take over ``key`` and ``value``, and select the former.
    swaps : ``In(1)``
        Select the other one.
    key, value : ``In(code_table(symbol_bits))``
    code : ``Out(code_table(symbol_bits))``
        The code selected.
    """

    def __init__(self, *, symbol_bits):
        self._symbol_bits = check_int("CodeSwitch symbol_bits", symbol_bits, minimum=2, maximum=8)
        shape = code_table(symbol_bits)
        super().__init__({
            "takes": In(1), "swaps": In(1), "key": In(shape), "value": In(shape),
            "code": Out(shape),
        })

    @property
    def symbol_bits(self):
        return self._symbol_bits

    def elaborate(self, platform):
        m = Module()
        takes_late, swaps_late = Signal(), Signal()
        m.d.sync += [takes_late.eq(self.takes), swaps_late.eq(self.swaps)]
        self._select(m, "limits", self.takes, self.swaps)
        self._select(m, "offsets", takes_late, swaps_late)
        return m

    def _select(self, m, part, takes, swaps):
        now, other = self.code[part], Signal.like(self.code[part], name=f"other_{part}")
        with m.If(takes):
            m.d.sync += [now.eq(self.key[part]), other.eq(self.value[part])]
        with m.Elif(swaps):
            m.d.sync += [now.eq(other), other.eq(now)]
