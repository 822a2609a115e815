"""Registers and memories inside a unit, by name.

Induction starts from any state in which the assertions hold, reachable or not. A contract must
therefore tie its own state to the unit's, of which the ports do not show enough.
"""

from amaranth.hdl import Const, Fragment, MemoryInstance, Signal

__all__ = ["Inside"]


class Inside:
    """A unit, elaborated; add its ``fragment`` to the contract in place of the unit."""

    def __init__(self, unit):
        self.fragment = Fragment.get(unit, platform=None)

    def register(self, name, *path):
        """The register ``name`` of the submodule at ``path``."""
        statements = self._part(path).statements["sync"]
        found = [signal for signal in statements._lhs_signals() if signal.name == name]
        assert len(found) == 1, f"{len(found)} registers {name!r} at {path}"
        return found[0]

    def row(self, address, *path):
        """The row at an address of the memory at ``path``, seen through a read port of its own."""
        memory = self._part(path)
        assert isinstance(memory, MemoryInstance), f"no memory at {path}"
        row = Signal(len(memory._read_ports[0]._data))
        memory.read_port(domain="comb", addr=address, data=row, en=Const(1), transparent_for=())
        return row

    def _part(self, path):
        part = self.fragment
        for name in path:
            part = part.find_subfragment(name)
        return part
