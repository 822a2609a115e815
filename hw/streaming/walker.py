"""Follows the pages of a fixed-rate payload."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import PAGE_TOKENS, WIRE_FORMATS, StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import chunk_begin, payload_beat
from hw.streaming.side_buffer import SideBuffer, side_entry
from hw.streaming.wire import element_bits, is_coded, side_bytes

__all__ = ["FORMAT_BITS", "PageWalker", "check_fixed", "fixed_formats", "is_one_of", "row_data"]

FORMAT_BITS = 3  # of the codes of fixed-rate formats


def fixed_formats(config: StreamingConfig) -> tuple[str, ...]:
    """Fixed-rate formats built in."""
    return tuple(name for name in config.formats if not is_coded(name))


def check_fixed(owner: str, config: object) -> StreamingConfig:
    """Return ``config`` if it is a `StreamingConfig` with a fixed-rate format, otherwise raise."""
    config = check_config(owner, config)
    if not fixed_formats(config):
        raise ValueError(
            f"{owner} config.formats must have a fixed-rate format, not {config.formats!r}")
    return config


def is_one_of(code, names):
    """Whether the low bits of a format's code are those of one of ``names``."""
    return Cat(code == WIRE_FORMATS[name] for name in names).any() if names else Const(0)


def row_data(config: StreamingConfig) -> data.StructLayout:
    """A payload beat that belongs to rows, with their side information; or, marked ``is_end``, no
    data but the end of a frame."""
    return data.StructLayout({
        "data": 8 * config.bus_bytes,
        "format": FORMAT_BITS,
        "is_double": 1,   # elements of 16 bits
        "is_half": 1,     # of 4 bits
        "side": side_entry(config),
        "is_end": 1,
    })


class PageWalker(wiring.Component):
    """Strips payloads of side blocks and padding, and attaches to each beat what they say of it.

    Of each frame come the beats of its rows, then an end. If the payload is over too early (by
    ``cut``, or just by ``last``), the end comes early.

    **Latency**: 0 cycles, combinational.

    **Throughput**: a payload beat per cycle. The end of a frame takes a cycle, in which the next
    may begin. ``i_payload.ready`` depends on ``o.ready`` within the cycle.

    **Numerics**: ``golden.streaming.payload.decode_payload``; sections 2 and 3 of
    docs/wire_format.md.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig
        With at least one fixed-rate format.

    Members
    -------
    i_begin : ``In(stream.Signature(chunk_begin(config)))``
        A frame of a fixed-rate format.
    i_payload : ``In(stream.Signature(payload_beat(config)))``
        Its payload.
    o : ``Out(stream.Signature(row_data(config)))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_fixed("PageWalker", config)
        super().__init__({
            "i_begin": In(stream.Signature(chunk_begin(config))),
            "i_payload": In(stream.Signature(payload_beat(config))),
            "o": Out(stream.Signature(row_data(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def side_beats(self) -> dict[str, int]:
        """Beats of the side block, of each format that has one."""
        sizes = {name: side_bytes(name, self.config.blocks) for name in fixed_formats(self.config)}
        return {name: size // self.config.bus_bytes for name, size in sizes.items() if size}

    def elaborate(self, platform):
        m = Module()
        beat = self.i_payload
        code = Signal(FORMAT_BITS)
        place = Signal(range(4 * self.config.row_beats))  # in a token's rows
        token = Signal(range(PAGE_TOKENS))
        tokens_left = Signal(self.config.token_bits)
        takes, ends_token = Signal(), Signal()
        is_over = beat.valid & beat.ready & beat.payload.last
        is_double, is_half = self._has(code, 16), self._has(code, 4)
        m.d.comb += [
            self.o.payload.format.eq(code),
            self.o.payload.is_double.eq(is_double),
            self.o.payload.is_half.eq(is_half),
        ]

        if self.side_beats:
            m.submodules.side = side = SideBuffer(self.config)
            m.d.comb += [
                side.row.eq(Cat(place[-1], token)),
                side.data.eq(beat.payload.data),
                self.o.payload.side.eq(side.entry),
            ]
        with m.FSM(name="state"):
            with m.State("IDLE"):
                self._begin(m, code, place, token, tokens_left)
            if self.side_beats:
                with m.State("SIDE"):
                    self._take_side(m, side, code, is_over)
            with m.State("ROWS"):
                m.d.comb += [
                    self.o.payload.data.eq(beat.payload.data),
                    self.o.valid.eq(beat.valid & ~beat.payload.cut),
                    beat.ready.eq(self.o.ready | beat.payload.cut),
                    takes.eq(self.o.valid & self.o.ready),
                ]
                with m.If(is_over):
                    m.next = "END"
                with m.Elif(takes & ends_token):
                    with m.If(tokens_left == 1):
                        m.next = "PADDING"
                    with m.Elif(token == PAGE_TOKENS - 1):
                        self._open_page(m, code)
            with m.State("PADDING"):
                m.d.comb += beat.ready.eq(1)
                with m.If(is_over):
                    m.next = "END"
            with m.State("END"):
                m.d.comb += [self.o.payload.is_end.eq(1), self.o.valid.eq(1)]
                with m.If(self.o.ready):
                    m.next = "IDLE"
                    self._begin(m, code, place, token, tokens_left)
        with m.If(takes):
            # The smallest step is that of 16 bits, half of `bus_bytes` elements; the place's top
            # bit then tells K from V.
            total = place + Mux(is_double, 1, Mux(is_half, 4, 2))
            m.d.sync += place.eq(total)
            with m.If(total[len(place)]):
                m.d.comb += ends_token.eq(1)
                m.d.sync += [token.eq(token + 1), tokens_left.eq(tokens_left - 1)]
        return m

    def _has(self, code, bits):
        return is_one_of(code, [name for name in fixed_formats(self.config)
                                if element_bits(name) == bits])

    def _begin(self, m, code, place, token, tokens_left):
        begin = self.i_begin
        m.d.comb += begin.ready.eq(1)
        with m.If(begin.valid):
            m.d.sync += [
                code.eq(begin.payload.format),
                tokens_left.eq(begin.payload.tokens),
                place.eq(0),
                token.eq(0),
            ]
            self._open_page(m, begin.payload.format)

    def _open_page(self, m, code):
        m.next = "ROWS"
        if self.side_beats:
            with m.If(is_one_of(code, self.side_beats)):
                m.next = "SIDE"

    def _take_side(self, m, side, code, is_over):
        beat = self.i_payload
        index = Signal.like(side.index)
        ends = Cat((code == WIRE_FORMATS[name]) & (index == beats - 1)
                   for name, beats in self.side_beats.items()).any()
        m.d.comb += [beat.ready.eq(1), side.index.eq(index), side.enable.eq(beat.valid)]
        with m.If(beat.valid):
            m.d.sync += index.eq(index + 1)
            with m.If(ends | is_over):
                m.d.sync += index.eq(0)
                m.next = "ROWS"
            with m.If(is_over):
                m.next = "END"
