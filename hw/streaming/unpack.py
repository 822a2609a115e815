"""Elements as sent to integers times powers of two."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import EXPONENT_NAN, StreamingConfig
from hw.streaming.layouts import Reason, decode_fault, element_beat, stored_beat
from hw.streaming.shaper import row_piece
from hw.streaming.walker import check_fixed, fixed_formats, is_one_of
from hw.streaming.wire import FLOATS, has_scales

__all__ = ["Unpack", "unpack_float"]

E_BITS = 9  # signed: -133..121


def unpack_float(fields, code):
    """``golden.streaming.elements.FloatFormat.unpack`` and ``is_finite``.

    Returns
    -------
    (significand, exponent, is_finite)
        Signed, signed, and a bit.
    """
    sign = code[fields.bits - 1]
    fraction = code[:fields.mantissa_bits]
    exponent = code[fields.mantissa_bits:fields.bits - 1]
    is_normal = exponent.any()
    magnitude = Cat(fraction, is_normal)
    largest = exponent.all() if fields.has_infinity else code[:fields.bits - 1].all()
    # A subnormal number has the exponent of the smallest normal ones.
    power = (exponent | ~is_normal) - (fields.bias + fields.mantissa_bits)
    return Mux(sign, -magnitude, magnitude), power, ~largest


class Unpack(wiring.Component):
    """Turns pieces of rows into elements, or into stored rows where they are that already.

    **Latency**: 2 cycles: fields; product with the scale.

    **Throughput**: a piece per cycle. ``i.ready`` depends on the ``ready`` of the outputs within
    the cycle.

    **Numerics**: ``golden.streaming.elements``; section 5 of docs/wire_format.md, the table.

    **Errors**: ``NONFINITE`` if an element, scale or exponent of the frame is.

    Parameters
    ----------
    config : StreamingConfig
        With at least one fixed-rate format.

    Members
    -------
    i : ``In(stream.Signature(row_piece(config)))``
    o_element : ``Out(stream.Signature(element_beat(config)))``
        Of all formats but MXINT8.
    o_stored : ``Out(stream.Signature(stored_beat(config)))``
        Of MXINT8; a block of zeros may still have any exponent.
    o_fault : ``Out(stream.Signature(decode_fault(config)))``
        For the end of each frame. Nothing of the next frame comes out before it is taken.
    """

    LATENCY = 2

    def __init__(self, config: StreamingConfig):
        self._config = check_fixed("Unpack", config)
        super().__init__({
            "i": In(stream.Signature(row_piece(config))),
            "o_element": Out(stream.Signature(element_beat(config))),
            "o_stored": Out(stream.Signature(stored_beat(config))),
            "o_fault": Out(stream.Signature(decode_fault(config))),
        })
        formats = fixed_formats(config)
        self._floats = [name for name in formats if name in FLOATS]
        self._scaled = [name for name in formats if has_scales(name)]
        self._stored = [name for name in formats if name == "MXINT8"]

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        piece = self.i.payload
        advance, valid = Signal(), Signal()
        p_bits = max(8, *(2 + FLOATS[name].mantissa_bits for name in self._floats), 0)
        fields = Signal(data.ArrayLayout(
            data.StructLayout({"p": signed(p_bits), "e": signed(E_BITS)}), self.config.bus_bytes))
        factor, is_scaled, nonfinite = Signal(8), Signal(), Signal()
        kind = Signal(data.StructLayout({"last": 1, "is_end": 1, "is_stored": 1}))
        exponents = Signal.like(piece.exponents)

        m.d.comb += self.i.ready.eq(advance)
        with m.If(advance):
            m.d.sync += [
                valid.eq(self.i.valid),
                kind.last.eq(piece.last),
                kind.is_end.eq(piece.is_end),
                kind.is_stored.eq(is_one_of(piece.format, self._stored)),
                exponents.eq(piece.exponents),
                is_scaled.eq(is_one_of(piece.format, self._scaled)),
            ]
            self._unpack(m, fields, factor, nonfinite)
        self._scale(m, advance, fields, factor, is_scaled)
        self._deliver(m, advance, valid, kind, exponents, nonfinite)
        return m

    def _unpack(self, m, fields, factor, nonfinite):
        """First stage: take the fields of all lanes apart; the last assignment wins."""
        piece = self.i.payload
        significand, power, is_finite = unpack_float(FLOATS["BF16"], piece.scale)
        m.d.sync += [factor.eq(significand), nonfinite.eq(0)]
        for lane, field in enumerate(fields):
            m.d.sync += [field.p.eq(piece.raw[lane][:8].as_signed()), field.e.eq(power)]
        with m.If(is_one_of(piece.format, ["INT4"])):
            for lane, field in enumerate(fields):
                m.d.sync += field.p.eq(piece.raw[lane][:4].as_signed())
        with m.If(is_one_of(piece.format, self._scaled)):
            m.d.sync += nonfinite.eq(~is_finite | piece.scale[-1])
        with m.If(is_one_of(piece.format, self._stored)):
            m.d.sync += nonfinite.eq(
                Cat(exponent == EXPONENT_NAN for exponent in piece.exponents).any())
        for name in self._floats:
            with m.If(is_one_of(piece.format, [name])):
                lanes = [unpack_float(FLOATS[name], raw) for raw in piece.raw]
                for field, (p, e, _) in zip(fields, lanes, strict=True):
                    m.d.sync += [field.p.eq(p), field.e.eq(e)]
                m.d.sync += nonfinite.eq(~Cat(is_finite for _, _, is_finite in lanes).all())

    def _scale(self, m, advance, fields, factor, is_scaled):
        """Second stage: multiply what has a scale."""
        for field, element, byte in zip(
                fields, self.o_element.payload.elements,
                range(0, len(self.o_stored.payload.data), 8), strict=True):
            with m.If(advance):
                m.d.sync += [
                    element.e.eq(field.e),
                    element.p.eq(Mux(is_scaled, field.p[:8].as_signed() * factor, field.p)),
                ]
                if self._stored:
                    m.d.sync += self.o_stored.payload.data[byte:byte + 8].eq(field.p)

    def _deliver(self, m, advance, valid, kind, exponents, nonfinite):
        """Hand each item to the output of its kind; an end tells what came before it."""
        element, stored, fault = self.o_element, self.o_stored, self.o_fault
        nonfinite_beat, nonfinite_frame = Signal(), Signal()
        m.d.comb += [
            advance.eq((~element.valid | element.ready) & (~stored.valid | stored.ready)
                       & (~fault.valid | fault.ready)),
            element.payload.nonfinite.eq(nonfinite_beat),
            fault.payload.reason.eq(Mux(nonfinite_frame, Reason.NONFINITE, Reason.NONE)),
        ]
        with m.If(advance):
            m.d.sync += [
                element.valid.eq(valid & ~kind.is_end & ~kind.is_stored),
                stored.valid.eq(valid & ~kind.is_end & kind.is_stored),
                fault.valid.eq(valid & kind.is_end),
                element.payload.last.eq(kind.last),
                stored.payload.last.eq(kind.last),
                stored.payload.exponents.eq(exponents),
                nonfinite_beat.eq(nonfinite),
            ]
            with m.If(fault.valid):
                m.d.sync += nonfinite_frame.eq(0)
            with m.Elif(element.valid | stored.valid):
                m.d.sync += nonfinite_frame.eq(nonfinite_frame | nonfinite_beat)
