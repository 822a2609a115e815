"""Symbols times the scale of their row."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.huffman.geometry import LANES, check_coded, coded_row
from hw.streaming.layouts import Reason, decode_fault, element_beat
from hw.streaming.unpack import E_BITS, unpack_float
from hw.streaming.wire import FLOATS

__all__ = ["RowScaler"]

FACTOR_BITS = 8


class RowScaler(wiring.Component):
    """Multiplies elements by the scale of their row, and gathers them to beats.

    **Latency**: 2 cycles (`LATENCY`) from the elements that complete a beat: fields of the scale;
    products.

    **Throughput**: eight elements per cycle. ``i.ready`` depends on the ``ready`` of the outputs
    within the cycle.

    **Numerics**: ``golden.streaming.payload.decode_payload``; section 5 of docs/wire_format.md.

    **Errors**: ``NONFINITE`` if a scale of the frame is, and nothing else was wrong with it.

    Parameters
    ----------
    config : StreamingConfig
        With at least one entropy-coded format.

    Members
    -------
    i : ``In(stream.Signature(coded_row(config)))``
    o_element : ``Out(stream.Signature(element_beat(config)))``
    o_fault : ``Out(stream.Signature(decode_fault(config)))``
        For the end of each frame. Nothing of the next frame comes out before it is taken.
    """

    LATENCY = 2

    def __init__(self, config: StreamingConfig):
        self._config = check_coded("RowScaler", config)
        super().__init__({
            "i": In(stream.Signature(coded_row(config))),
            "o_element": Out(stream.Signature(element_beat(config))),
            "o_fault": Out(stream.Signature(decode_fault(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        beat, fault, advance = self.o_element, self.o_fault, Signal()
        m.d.comb += [
            advance.eq((~beat.valid | beat.ready) & (~fault.valid | fault.ready)),
            self.i.ready.eq(advance),
        ]
        row, factor, power, nonfinite, valid = self._unpack(m, advance)

        groups = self.config.bus_bytes // LANES
        place, is_whole, bad_frame = Signal(range(groups)), Signal(), Signal()
        exponent = Signal.like(power)
        m.d.comb += is_whole.eq(place == groups - 1)
        for index, element in enumerate(beat.payload.elements):
            m.d.comb += element.e.eq(exponent)
            with m.If(advance & (place == index // LANES)):
                m.d.sync += element.p.eq(row.q[index % LANES] * factor)
        with m.If(advance):
            m.d.sync += [
                beat.valid.eq(valid & ~row.is_end & is_whole),
                fault.valid.eq(valid & row.is_end),
                exponent.eq(power),
                beat.payload.last.eq(row.last),
                beat.payload.nonfinite.eq(nonfinite),
                fault.payload.eq(Mux(
                    bad_frame & (row.reason == Reason.NONE), Reason.NONFINITE, row.reason)),
            ]
            with m.If(valid & row.is_end):
                m.d.sync += bad_frame.eq(0)
            with m.Elif(valid):
                m.d.sync += [
                    bad_frame.eq(bad_frame | nonfinite),
                    place.eq(Mux(is_whole, 0, place + 1)),
                ]
        return m

    def _unpack(self, m, advance):
        """First stage: the fields of the scale."""
        row = Signal.like(self.i.payload)
        factor, power = Signal(FACTOR_BITS), Signal(signed(E_BITS))
        nonfinite, valid = Signal(), Signal()
        scale = self.i.payload.scale
        significand, exponent, is_finite = unpack_float(FLOATS["BF16"], scale)
        with m.If(advance):
            m.d.sync += [
                valid.eq(self.i.valid),
                row.eq(self.i.payload),
                factor.eq(significand),
                power.eq(exponent),
                nonfinite.eq(~is_finite | scale[-1]),
            ]
        return row, factor, power, nonfinite, valid
