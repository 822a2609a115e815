"""Turn payloads into bits and back, by the layouts of a sidecar."""

__all__ = ["pack", "unpack"]


def pack(shape, value):
    """Return the bits of a value as a non-negative integer.

    Parameters
    ----------
    shape : dict
        Description of the shape (see ``hw.ports.describe_shape``).
    value : int, str, dict or list
        An integer; the name of an enum's member; a dict for a struct, fields left out being zero;
        a list for an array; or an integer for the bits of a whole struct or array.

    Raises
    ------
    KeyError
        The struct has no field, or the enum no member, of that name.
    ValueError
        A value does not fit, or an array has the wrong number of elements.
    """
    if isinstance(value, dict):
        fields = {field["name"]: field for field in shape["fields"]}
        bits = 0
        for name, item in value.items():
            if name not in fields:
                raise KeyError(f"no field {name!r} among {', '.join(fields)}")
            bits |= pack(fields[name], item) << fields[name]["offset"]
        return bits
    if isinstance(value, (list, tuple)):
        if len(value) != shape["length"]:
            raise ValueError(f"array must have {shape['length']} elements, not {len(value)}")
        element = shape["element"]
        bits = 0
        for index, item in enumerate(value):
            bits |= pack(element, item) << index * element["width"]
        return bits
    if isinstance(value, str):
        value = shape["values"][value]
    width = shape["width"]
    lowest = -(1 << width - 1) if shape["signed"] else 0
    highest = (1 << width - 1) - 1 if shape["signed"] else (1 << width) - 1
    if not lowest <= value <= highest:
        raise ValueError(f"value must be in {lowest}..{highest}, not {value!r}")
    return int(value) & (1 << width) - 1


def unpack(shape, bits):
    """Return the value that bits stand for: int, dict or list; an enum stays an integer."""
    if "fields" in shape:
        return {
            field["name"]: unpack(field, bits >> field["offset"] & (1 << field["width"]) - 1)
            for field in shape["fields"]}
    if "element" in shape:
        element = shape["element"]
        mask = (1 << element["width"]) - 1
        return [unpack(element, bits >> index * element["width"] & mask)
                for index in range(shape["length"])]
    if shape["signed"] and bits >> shape["width"] - 1:
        return bits - (1 << shape["width"])
    return bits
