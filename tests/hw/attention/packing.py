"""Random and chosen payloads as bits, so that no field is out of a test's reach."""

from amaranth.hdl import Shape
from amaranth.lib import data


def pack(shape, value):
    """Bits of a value: nested dicts and lists as the layout has them, fields left out zero.

    Enum fields take any integer, members or not.
    """
    if isinstance(shape, data.Layout):
        items = dict(enumerate(value)) if isinstance(value, list) else value
        unknown = set(items) - {key for key, _ in shape}
        assert not unknown, f"no field {unknown}"
        return sum(pack(field.shape, items[key]) << field.offset
                   for key, field in shape if key in items)
    return int(getattr(value, "value", value)) & ((1 << Shape.cast(shape).width) - 1)


def packed(layout, value):
    """What ``ctx.set`` takes for a payload of that layout."""
    return data.Const(layout, pack(layout, value))


def garbage(rng, shape):
    """A random value of any shape, as `pack` takes it."""
    if isinstance(shape, data.ArrayLayout):
        return [garbage(rng, field.shape) for _, field in shape]
    if isinstance(shape, data.Layout):
        return {key: garbage(rng, field.shape) for key, field in shape}
    return rng.getrandbits(Shape.cast(shape).width)
