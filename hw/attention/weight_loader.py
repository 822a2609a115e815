"""Loads rows of the encoder's weight memory."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Out

from hw.attention.layouts import Error
from hw.attention.loader import loader_members
from hw.config import WEIGHT_BITS, AttentionConfig

__all__ = ["WeightLoader", "weight_row"]


def weight_row(config: AttentionConfig) -> data.StructLayout:
    """A row of the weight memory: ``head_dim`` signed bytes, element 0 in bits 7:0."""
    return data.StructLayout({"index": 16, "data": config.head_dim * WEIGHT_BITS})


class WeightLoader(wiring.Component):
    """Passes the records on as rows, from the command's ``index`` up.

    **Latency**: 0 cycles, combinational.

    **Throughput**: one row per cycle.

    **Numerics**: none.

    **Errors**: DATA; the rows before the bad record are written.

    Parameters
    ----------
    config : AttentionConfig

    Members
    -------
    loader_members
    o_weight : ``Out(stream)`` of ``weight_row``
    """

    def __init__(self, config: AttentionConfig):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"WeightLoader config must be an AttentionConfig, not {config!r}")
        self._config = config
        super().__init__(loader_members(config) | {
            "o_weight": Out(stream.Signature(weight_row(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        record = self.i.payload
        m.d.comb += [
            self.records.eq(self.command.count),
            self.beats.eq(self.config.row_bytes // self.config.memory_bytes),
            self.o_weight.valid.eq(self.i.valid & ~record.bad),
            self.o_weight.payload.index.eq(self.command.index + self.index),
            self.o_weight.payload.data.eq(record.data),
            self.i.ready.eq(record.bad | self.o_weight.ready),
            self.done.eq(self.i.valid & self.i.ready & (record.final | record.bad)),
            self.error.eq(Mux(record.bad, Error.DATA, Error.NONE)),
        ]
        return m
