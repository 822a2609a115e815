"""Sends each frame to the decoder of its format."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import WIRE_FORMATS, StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.layouts import chunk_begin, payload_beat
from hw.streaming.wire import is_coded

__all__ = ["FRAMES", "Dispatch", "Path"]

FRAMES = 8  # begun and not yet ended


class Path(enum.Enum, shape=2):
    """Which way rows take to the planes."""

    FIXED = 0   # fixed-rate decoder, quantiser
    STORED = 1  # fixed-rate decoder alone: MXINT8
    CODED = 2   # entropy decoder, quantiser


class Dispatch(wiring.Component):
    """Sends each frame to its decoder, and keeps rows of different paths apart.

    Frames of one path follow each other without a gap. Before the path changes, all frames begun
    must have ended, so that no row overtakes another.

    **Latency**: 0 cycles, combinational.

    **Throughput**: a payload beat per cycle.

    **Numerics**: none.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_begin : ``In(stream.Signature(chunk_begin(config)))``
        A frame, of a format built in.
    i_payload : ``In(stream.Signature(payload_beat(config)))``
        Its payload.
    o_begin : ``Out(stream.Signature(chunk_begin(config))).array(2)``
        To the fixed-rate decoder, and to the entropy decoder.
    o_payload : ``Out(stream.Signature(payload_beat(config))).array(2)``
        Likewise.
    path : ``Out(Path)``
        Of the frames under way.
    ends : ``In(1)``
        The oldest frame under way has ended: nothing of it is left.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Dispatch", config)
        super().__init__({
            "i_begin": In(stream.Signature(chunk_begin(config))),
            "i_payload": In(stream.Signature(payload_beat(config))),
            "o_begin": Out(stream.Signature(chunk_begin(config))).array(2),
            "o_payload": Out(stream.Signature(payload_beat(config))).array(2),
            "path": Out(Path),
            "ends": In(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        path, is_open = Signal(Path), Signal()
        frames = Signal(range(FRAMES + 1))
        may_begin, begins = Signal(), Signal()
        code = self.i_begin.payload.format
        coded = [name for name in self.config.formats if is_coded(name)]
        with m.If(Cat(code == WIRE_FORMATS[name] for name in coded).any() if coded else Const(0)):
            m.d.comb += path.eq(Path.CODED)
        with m.Elif(code == WIRE_FORMATS["MXINT8"]):
            m.d.comb += path.eq(Path.STORED)

        m.d.comb += [
            may_begin.eq(~is_open & (frames != FRAMES) & ((path == self.path) | (frames == 0))),
            begins.eq(self.i_begin.valid & self.i_begin.ready),
        ]
        m.d.sync += frames.eq(frames + begins - self.ends)
        for index, (begin, payload) in enumerate(zip(self.o_begin, self.o_payload, strict=True)):
            m.d.comb += [
                begin.payload.eq(self.i_begin.payload),
                payload.payload.eq(self.i_payload.payload),
            ]
            with m.If((path == Path.CODED) == index):
                m.d.comb += [
                    begin.valid.eq(self.i_begin.valid & may_begin),
                    self.i_begin.ready.eq(begin.ready & may_begin),
                ]
            with m.If((self.path == Path.CODED) == index):
                m.d.comb += [
                    payload.valid.eq(self.i_payload.valid & is_open),
                    self.i_payload.ready.eq(payload.ready & is_open),
                ]
        with m.If(begins):
            m.d.sync += [is_open.eq(1), self.path.eq(path)]
        with m.Elif(self.i_payload.valid & self.i_payload.ready & self.i_payload.payload.last):
            m.d.sync += is_open.eq(0)
        return m
