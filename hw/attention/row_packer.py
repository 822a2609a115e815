"""Packs elements into a row as it is stored."""

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int
from hw.config import ELEMENT_BITS, PLANE_BITS, AttentionConfig

__all__ = ["RowPacker", "row_bus_beat"]


def row_bus_beat(config: AttentionConfig) -> data.StructLayout:
    """A bus beat of a stored row; ``last`` on the row's last."""
    return data.StructLayout({"data": config.memory_bytes * 8, "last": 1})


class RowPacker(wiring.Component):
    """Gathers a row's elements, ``lanes`` at a time, and gives it in bus beats.

    **Latency**: 1 cycle from a row's last elements to its first beat.

    **Throughput**: one row at a time: ``head_dim / lanes`` cycles in, then ``full_beats`` out.

    **Numerics**: ``golden.mxint.pack_row``.

    **Errors**: none.

    Parameters
    ----------
    config : AttentionConfig
    lanes : int
        Elements per transfer: a power of two up to ``head_dim / 2``.

    Members
    -------
    i : ``In(stream.Signature(data.ArrayLayout(signed(8), lanes)))``
        Elements in order.
    o : ``Out(stream.Signature(row_bus_beat(config)))``
        Upper plane, then lower plane.
    """

    def __init__(self, config: AttentionConfig, *, lanes):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"RowPacker config must be an AttentionConfig, not {config!r}")
        self._config = config
        check_int("RowPacker lanes", lanes, minimum=1, maximum=config.head_dim // 2)
        if lanes & (lanes - 1):
            raise ValueError(f"RowPacker lanes must be a power of two, not {lanes!r}")
        self._lanes = lanes
        super().__init__({
            "i": In(stream.Signature(data.ArrayLayout(signed(ELEMENT_BITS), lanes))),
            "o": Out(stream.Signature(row_bus_beat(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    @property
    def lanes(self):
        return self._lanes

    def elaborate(self, platform):
        m = Module()
        config = self.config
        upper = Signal(config.plane_bytes * 8)
        lower = Signal(config.plane_bytes * 8)
        # Chunks gathered, then beats given.
        count = Signal(range(max(config.head_dim // self.lanes, config.full_beats)))
        elements = [element.as_unsigned() for element in self.i.payload]
        is_last = Signal()
        m.d.comb += [
            self.i.ready.eq(~self.o.valid),
            self.o.payload.data.eq(Cat(upper, lower)),
            self.o.payload.last.eq(is_last),
        ]

        # Both planes fill from the top, so that the first element ends up at the bottom, and beats
        # leave from there.
        with m.If(self.o.valid):
            m.d.comb += is_last.eq(count == config.full_beats - 1)
            with m.If(self.o.ready):
                m.d.sync += [
                    Cat(upper, lower).eq(Cat(upper, lower) >> len(self.o.payload.data)),
                    count.eq(count + 1),
                ]
                with m.If(is_last):
                    m.d.sync += [count.eq(0), self.o.valid.eq(0)]
        with m.Elif(self.i.valid):
            added = self.lanes * PLANE_BITS
            m.d.sync += [
                upper.eq(Cat(upper[added:], *(element[PLANE_BITS:] for element in elements))),
                lower.eq(Cat(lower[added:], *(element[:PLANE_BITS] for element in elements))),
                count.eq(count + 1),
            ]
            with m.If(count == config.head_dim // self.lanes - 1):
                m.d.sync += [count.eq(0), self.o.valid.eq(1)]
        return m
