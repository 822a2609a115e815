"""Repeated blocks, emitted once."""

from amaranth.hdl import ClockSignal, Instance, ResetSignal
from amaranth.lib import wiring

from hw.platform import VerilogPlatform
from hw.ports import flatten_ports


class Once(wiring.Component):
    """Wraps a component that is instantiated many times, so that Verilog has its module once.

    ::

        for index in range(lanes):
            m.submodules[f"lane_{index}"] = lane = Once(MatchLane(code_bits=64))
            m.d.comb += lane.code.eq(codes[index])

    The wrapper has the signature, the ports and the attributes of what it wraps. In Amaranth's
    simulator it unfolds into the component itself. In Verilog it is an instance of a module named
    after the component's class and arguments; each constructor argument must therefore be a
    property of the same name, with a ``repr`` that is the same in every run.

    ``DomainRenamer`` applies to it. ``ResetInserter`` and ``EnableInserter`` do not reach into an
    instance: apply them inside the component, before it is wrapped.

    Latency, throughput, numerics and errors are those of the component.

    Parameters
    ----------
    component : wiring.Component
        What to instantiate. It may use the ``sync`` domain and none else.

    Members
    -------
    Those of the component.
    """

    def __init__(self, component):
        if not isinstance(component, wiring.Component):
            raise TypeError(f"Once component must be a wiring.Component, not {component!r}")
        super().__init__(component.signature)
        self._component = component
        # The component's own ports, so that they need no wiring when it unfolds.
        for name in component.signature.members:
            setattr(self, name, getattr(component, name))

    @property
    def component(self):
        return self._component

    def __getattr__(self, name):
        # Reached for what is no port: the properties of the component.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._component, name)

    def elaborate(self, platform):
        if not isinstance(platform, VerilogPlatform):
            return self._component

        name, clocking = platform.use_component(self._component)
        signals = {"clk": ClockSignal(), "rst": ResetSignal(allow_reset_less=True)}
        connections = [("i", port, signals[port]) for port in clocking]
        connections += [("i" if port.is_input else "o", port.name, port.value)
                        for port in flatten_ports(self._component)]
        return Instance(name, *connections)
