"""Payload beats as words of eight bytes."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import SkidBuffer
from hw.streaming.checks import check_config
from hw.streaming.huffman.geometry import WORD_BITS, WORD_BYTES, payload_word
from hw.streaming.layouts import payload_beat

__all__ = ["PayloadWords"]


class PayloadWords(wiring.Component):
    """Splits payload beats into words; a beat that was cut holds none, and becomes one.

    **Latency**: 1 cycle, a register slice.

    **Throughput**: a word per cycle. ``i.ready`` does not depend on ``o.ready`` within the cycle.

    **Numerics**: none, bits pass unchanged.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(payload_beat(config)))``
    o : ``Out(stream.Signature(payload_word()))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("PayloadWords", config)
        super().__init__({
            "i": In(stream.Signature(payload_beat(config))),
            "o": Out(stream.Signature(payload_word())),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.slice = edge = SkidBuffer(payload_word())
        beat, word = self.i.payload, edge.i.payload
        index = Signal(range(self.config.bus_bytes // WORD_BYTES))
        is_last = Signal()
        m.d.comb += [
            is_last.eq((index == self.config.bus_bytes // WORD_BYTES - 1) | beat.cut),
            word.data.eq(beat.data.word_select(index, WORD_BITS)),
            word.last.eq(beat.last & is_last),
            word.cut.eq(beat.cut),
            edge.i.valid.eq(self.i.valid),
            self.i.ready.eq(edge.i.ready & is_last),
        ]
        with m.If(edge.i.valid & edge.i.ready):
            m.d.sync += index.eq(index + 1)
            with m.If(is_last):
                m.d.sync += index.eq(0)
        wiring.connect(m, edge.o, wiring.flipped(self.o))
        return m
