"""Rounding, saturation and plain delays: the only places where the hardware narrows a number.

These are functions that build expressions (or, for `delay`, registers) in the caller's module; the
golden twins are `golden.fixed.rnd` and `golden.fixed.sat`.
"""

from amaranth.hdl import Cat, Mux, Signal

__all__ = ["clip_unsigned", "delay", "round_shift", "round_shift_by", "saturate"]


def round_shift(value, shift):
    """``golden.fixed.rnd`` by a constant: nearest, ties towards plus infinity."""
    if shift == 0:
        return value
    return (value + (1 << (shift - 1))) >> shift


def round_shift_by(value, amount):
    """``golden.fixed.rnd`` by a signal.

    Adding half a unit and dropping the fraction equals keeping one fraction bit, adding one there
    and dropping it: the carry chain stays as narrow as the result, and ``amount`` may exceed the
    width of ``value``.
    """
    with_half = (value << 1) >> amount
    return (with_half + 1) >> 1


def saturate(value, bits):
    """Clip a signed value to ``bits``-bit signed (``golden.fixed.sat``).

    Returns
    -------
    (value, clipped)
        The result, and one bit that tells whether it differs from ``value``.
    """
    if len(value) <= bits:
        return value, 0
    sign = value[-1]
    overflow = value[bits - 1:-1] != sign.replicate(len(value) - bits)
    limit = Cat((~sign).replicate(bits - 1), sign)
    return Mux(overflow, limit, value[:bits]).as_signed(), overflow


def clip_unsigned(value, bits):
    """Clip an unsigned value to its largest ``bits``-bit neighbour."""
    if len(value) <= bits:
        return value
    return value[:bits] | value[bits:].any().replicate(bits)


def delay(m, value, cycles, *, name, enable=1):
    """Registers that hold ``value`` back by ``cycles`` cycles in which ``enable`` is high."""
    for stage in range(1, cycles + 1):
        register = Signal.like(value, name=f"{name}_{stage}")
        with m.If(enable):
            m.d.sync += register.eq(value)
        value = register
    return value
