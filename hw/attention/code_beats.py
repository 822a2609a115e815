"""Where a new token's code and exponents lie in memory, when codes are streamed."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import exponents
from hw.attention.row_writer import write_beat
from hw.config import AttentionConfig

__all__ = ["CodeBeats", "token_code"]


def token_code(config: AttentionConfig) -> data.StructLayout:
    """A token's code and exponents, and where its context's code lines begin."""
    return data.StructLayout({
        "position": config.position_bits,
        "code_address": config.address_bits,
        "code": config.code_bits,
        "keys": exponents(config), "values": exponents(config),
    })


class CodeBeats(wiring.Component):
    """Writes a token's part of its code line: its code, then its exponents, each with strobes.

    A line holds the codes of ``lanes`` tokens, then their exponents (K blocks, then V blocks, token
    by token), and is padded to whole beats.

    **Latency**: 2 cycles from ``i`` to the first beat.

    **Throughput**: a token per 2 cycles and its beats.

    **Numerics**: none.

    **Errors**: none. ``code_address`` must be a multiple of the bus width.

    Parameters
    ----------
    config : AttentionConfig
        With ``code_source`` "streamed".

    Members
    -------
    i : ``In(stream.Signature(token_code(config)))``
        Tokens; taken with their last beat.
    o : ``Out(stream.Signature(write_beat(config)))``
        Bursts of one beat, so that none crosses 4 KiB.
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"CodeBeats config must be an AttentionConfig, not {config!r}")
        if config.code_source != "streamed":
            raise ValueError(f"CodeBeats config.code_source must be 'streamed', "
                             f"not {config.code_source!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(token_code(config))),
            "o": Out(stream.Signature(write_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config, token = self.config, self.i.payload
        lane_bits = (config.lanes - 1).bit_length()
        lane = token.position[:lane_bits]
        line = token.position[lane_bits:]
        code_bytes = config.code_bits // 8

        offset = Signal(range(config.max_lines * config.code_line_bytes))
        line_address = Signal(config.address_bits)
        m.d.sync += [
            offset.eq(line * config.code_line_bytes),
            line_address.eq(token.code_address + offset),
        ]

        parts = [
            *self._split(token.code, code_bytes, lane * code_bytes),
            *self._split(Cat(token["keys"], token["values"]), config.exponent_bytes,
                         config.lanes * code_bytes + lane * config.exponent_bytes),
        ]
        count = Signal(range(len(parts)))
        is_last = count == len(parts) - 1
        with m.Switch(count):
            for index, (part_offset, word, strobe) in enumerate(parts):
                with m.Case(index):
                    m.d.comb += [
                        self.o.payload.address.eq(line_address + part_offset),
                        self.o.payload.data.eq(word),
                        self.o.payload.strobe.eq(strobe),
                    ]
        m.d.comb += [
            self.o.payload.length.eq(0),
            self.o.payload.last.eq(1),
            self.i.ready.eq(self.o.valid & self.o.ready & is_last),
        ]
        # The line's address is known two cycles after the token came.
        wait = Signal(range(3))
        m.d.comb += self.o.valid.eq(wait == 2)
        with m.If(self.i.ready):
            m.d.sync += [wait.eq(0), count.eq(0)]
        with m.Elif(self.i.valid & (wait != 2)):
            m.d.sync += wait.eq(wait + 1)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += count.eq(count + 1)
        return m

    def _split(self, value, size, offset):
        """The beats of ``size`` aligned bytes: for each its offset, data and strobes."""
        width = self.config.memory_bytes
        if size >= width:
            every = (1 << width) - 1
            return [(offset + low, value[8 * low:8 * (low + width)], every)
                    for low in range(0, size, width)]
        place = offset % width
        return [(offset - place, value.replicate(width // size), ((1 << size) - 1) << place)]
