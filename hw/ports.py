"""Names and layouts of the ports of an emitted module.

A port is named by its path in the signature, joined with ``_``: the stream ``i_command`` becomes
``i_command_valid``, ``i_command_ready`` and ``i_command_payload``, a struct payload being one
vector whose layout the sidecar tells. An interface of AXI channels gets the conventional names, one
port per field: ``m_axi_awvalid``, ``m_axi_awready``, ``m_axi_awaddr``; so does a stream whose name
begins with ``s_axis`` or ``m_axis``: ``s_axis_tvalid``, ``s_axis_tdata``.
"""

import enum as python_enum
from dataclasses import dataclass

from amaranth.hdl import Elaboratable, Module, Shape, Signal, Value
from amaranth.hdl._ir import PortDirection  # `verilog.convert` takes it, but nothing exports it
from amaranth.lib import data, stream
from amaranth.lib.wiring import In

__all__ = ["Port", "convertible", "describe_shape", "flatten_ports"]

AXIS_PREFIXES = ("s_axis", "m_axis")
AXI_CHANNELS = frozenset({"aw", "w", "b", "ar", "r"})


@dataclass(frozen=True)
class Port:
    """A port of an emitted module.

    Attributes
    ----------
    name : str
        Its name in Verilog.
    value : Value
        The signal, or the field of a payload, that it carries.
    is_input : bool
        Whether the module reads it.
    shape : shape-like
        Shape as the signature declares it.
    stream : str or None
        Name of the stream that it is part of.
    """

    name: str
    value: Value
    is_input: bool
    shape: object
    stream: str | None = None


def flatten_ports(component):
    """List the ports of a component in the order of its signature; none has a width of 0.

    Raises
    ------
    NameError
        Two members flatten to the same name.
    """
    ports = [port for port in _walk_members(component.signature, component, "")
             if len(port.value) > 0]
    names = [port.name for port in ports]
    for name in names:
        if names.count(name) > 1:
            raise NameError(f"{type(component).__name__} has two ports that flatten to the name "
                            f"{name!r}")
    return ports


def _walk_members(signature, interface, prefix):
    for name, member in signature.members.items():
        yield from _walk_array(member, getattr(interface, name), prefix + name, member.dimensions)


def _walk_array(member, value, name, dimensions):
    if dimensions:
        for index, element in enumerate(value):
            yield from _walk_array(member, element, f"{name}_{index}", dimensions[1:])
    elif member.is_port:
        yield Port(name, Value.cast(value), member.flow == In, member.shape)
    elif _is_stream(member.signature) and name.startswith(AXIS_PREFIXES):
        yield from _walk_stream(member.signature, value, name, None, f"{name}_t")
    elif _is_stream(member.signature):
        yield from _walk_stream(member.signature, value, name, f"{name}_payload", f"{name}_")
    elif _is_axi(member.signature):
        for channel, channel_member in member.signature.members.items():
            yield from _walk_stream(channel_member.signature, getattr(value, channel),
                                    f"{name}_{channel}", None, f"{name}_{channel}")
    else:
        yield from _walk_members(member.signature, value, f"{name}_")


def _walk_stream(signature, port, name, payload_name, prefix):
    """Ports of one stream; the payload as one port if it has a name, otherwise field by field."""
    members = signature.members
    payload = members["payload"]
    if payload_name is None:
        layout = data.Layout.cast(payload.shape)
        for field_name, field in layout:
            yield Port(f"{prefix}{field_name}", Value.cast(port.payload[field_name]),
                       payload.flow == In, field.shape, name)
    else:
        yield Port(payload_name, Value.cast(port.payload), payload.flow == In, payload.shape, name)
    for role in ("valid", "ready"):
        yield Port(f"{prefix}{role}", Value.cast(getattr(port, role)),
                   members[role].flow == In, 1, name)


def _is_stream(signature):
    return isinstance(signature, stream.Signature) or isinstance(signature.flip(), stream.Signature)


def _is_axi(signature):
    return AXI_CHANNELS.issuperset(signature.members) and all(
        member.is_signature and _is_stream(member.signature)
        for member in signature.members.values())


def convertible(component, ports):
    """Return an elaboratable and a ``ports=`` argument for ``verilog.convert``.

    A port must be a whole signal there; one that is a field of a payload gets a signal of its own,
    wired to the field around the component.
    """
    argument = {}
    fields = []
    for port in ports:
        signal = port.value
        if not isinstance(signal, Signal):
            signal = Signal(Shape.cast(port.shape), name=port.name)
            fields.append((port, signal))
        direction = PortDirection.Input if port.is_input else PortDirection.Output
        argument[port.name] = (signal, direction)
    return (_Edge(component, fields) if fields else component), argument


class _Edge(Elaboratable):
    """Wires the fields of payloads to signals of their own."""

    def __init__(self, component, fields):
        self._component = component
        self._fields = fields

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = self._component
        for port, signal in self._fields:
            if port.is_input:
                m.d.comb += port.value.eq(signal)
            else:
                m.d.comb += signal.eq(port.value)
        return m


def describe_shape(shape):
    """Describe a shape for the sidecar: width, signedness, and the layout inside, if it has one.

    Returns
    -------
    dict
        ``width``, ``signed``, and one of: ``fields`` (a struct or union: list of descriptions, each
        with ``name`` and ``offset``), ``length`` and ``element`` (an array), ``values`` (an enum:
        dict of member names to integers).
    """
    cast = Shape.cast(shape)
    description = {"width": cast.width, "signed": cast.signed}
    if isinstance(shape, type) and issubclass(shape, python_enum.Enum):
        description["values"] = {member.name: member.value for member in shape}
        return description
    try:
        layout = data.Layout.cast(shape)
    except TypeError:
        return description
    if isinstance(layout, data.ArrayLayout):
        description["length"] = layout.length
        description["element"] = describe_shape(layout.elem_shape)
    else:
        description["fields"] = [
            {"name": name, "offset": field.offset, **describe_shape(field.shape)}
            for name, field in layout]
    return description
