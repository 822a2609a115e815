"""By which chunk each column can be computed further."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.sram import Sram
from hw.streaming.checks import check_config
from hw.streaming.scheduler.layouts import effects, grid, row

__all__ = ["Columns"]


class Columns(wiring.Component):
    """Next chunk of each column, from the bottom up.

    **Latency**: 1 cycle from ``read`` to ``entry``.

    **Throughput**: a column read and one written, per cycle.

    **Numerics**: ``golden.streaming.tasks.Table.next_of``.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    read : ``In(1)``
    index : ``In(chunk_bits)``
        Column to read.
    entry : ``Out(chunk_bits)``
    is_top : ``Out(1)``
        The whole column has been computed: there is no next chunk.
    settle : ``In(1)``
        The chunk shown is the lowest of ``column``.
    column : ``In(chunk_bits)``
    row : ``In(row(config))``
    effects : ``In(effects(config))``
        Of them ``deepen``.
    grid : ``In(grid(config))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Columns", config)
        bits = config.chunk_bits
        super().__init__({
            "read": In(1), "index": In(bits), "entry": Out(bits), "is_top": Out(1),
            "settle": In(1), "column": In(bits),
            "row": In(row(config)), "effects": In(effects(config)), "grid": In(grid(config)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.sram = memory = Sram(
            data.StructLayout({"chunk": self.config.chunk_bits, "is_top": 1}),
            depth=self.config.chunks)
        m.d.comb += [
            memory.read.en.eq(self.read),
            memory.read.addr.eq(self.index),
            self.entry.eq(memory.read.data.chunk),
            self.is_top.eq(memory.read.data.is_top),

            memory.write.en.eq(self.settle | self.effects.deepen),
            memory.write.addr.eq(Mux(self.settle, self.column, self.row.place.column)),
            memory.write.data.chunk.eq(
                self.row.chunk + Mux(self.settle, 0, self.grid.heads)),
            memory.write.data.is_top.eq(~self.settle & self.row.word.last_layer),
        ]
        return m
