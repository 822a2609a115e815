"""The platform that units are elaborated for when they become Verilog."""

import re
from hashlib import sha256
from importlib.resources import files
from inspect import signature

from amaranth.back import verilog
from amaranth.lib import wiring

from hw.checks import check_int
from hw.ports import convertible, flatten_ports

__all__ = ["VerilogPlatform", "constructor_arguments", "module_name", "to_verilog"]

_LONGEST_NAME = 60


class VerilogPlatform:
    """Collects the modules that a design instantiates, each once.

    Amaranth's simulator elaborates with no platform; `hw.sram.Sram` and `hw.shared.Once` then
    unfold into plain Amaranth. For Verilog they become instances of modules collected here.

    Parameters
    ----------
    sram_threshold_bits : int
        Memories of at least this size become the macro ``kvs_sram``.
    """

    def __init__(self, *, sram_threshold_bits=4096):
        self._sram_threshold_bits = check_int(
            "sram_threshold_bits", sram_threshold_bits, minimum=1)
        self._components = {}
        self._texts = {}

    @property
    def sram_threshold_bits(self):
        return self._sram_threshold_bits

    def use_macro(self, name):
        """Include the hand-kept module ``hw/rtl/<name>.v``."""
        if name not in self._texts:
            self._texts[name] = (files("hw") / "rtl" / f"{name}.v").read_text(encoding="utf-8")

    def use_component(self, component):
        """Include the module of ``component``, converted once, and return its name and ports.

        Returns
        -------
        tuple of str and tuple of str
            Name of the module, and its clock and reset ports if it has any.
        """
        name = module_name(component)
        known = self._components.setdefault(name, component)
        # One is converted in place of all; Amaranth would report the others as forgotten.
        component._MustUse__used = True
        if type(known) is not type(component):
            raise NameError(f"{type(known)!r} and {type(component)!r} would both become the "
                            f"Verilog module {name!r}")
        if name not in self._texts:
            self._texts[name] = to_verilog(component, name, self)
        header = re.search(r"^module \S+\((.*?)\);", self._texts[name], re.MULTILINE)
        assert header is not None
        ports = header.group(1).split(", ")
        return name, tuple(port for port in ("clk", "rst") if port in ports)

    @property
    def module_names(self):
        """Names of the modules collected, in order."""
        return sorted(self._texts)

    def modules(self):
        """Text of all modules collected, in the order of their names.

        Each is guarded, so that the files of several units can be compiled together.
        """
        return "\n".join(
            f"`ifndef MODULE_{name}\n`define MODULE_{name}\n{self._texts[name].strip()}\n`endif\n"
            for name in self.module_names)


def constructor_arguments(component):
    """Return the arguments that a component was made with.

    By convention each constructor argument is kept as a property of the same name.

    Raises
    ------
    TypeError
        The component has no attribute of the name of one of its arguments.
    """
    cls = type(component)
    if cls.__init__ is wiring.Component.__init__:
        return {}
    names = list(signature(cls.__init__).parameters)[1:]
    for name in names:
        if not hasattr(component, name):
            raise TypeError(f"{cls.__name__} must keep its argument {name!r} as a property")
    return {name: getattr(component, name) for name in names}


def module_name(component):
    """Name a component after its class and arguments: when these are equal, so is the hardware."""
    cls = type(component)
    arguments = constructor_arguments(component)
    if not arguments:
        return cls.__name__
    if all(type(value) in (int, bool) and value >= 0 for value in arguments.values()):
        readable = "_".join(f"{name}_{int(value)}" for name, value in arguments.items())
        name = f"{cls.__name__}__{readable}"
        if len(name) <= _LONGEST_NAME:
            return name
    description = repr({
        name: module_name(value) if isinstance(value, wiring.Component) else value
        for name, value in arguments.items()})
    if " at 0x" in description:
        raise TypeError(f"{cls.__name__} can not be shared: an argument has no stable repr in "
                        f"{description}")
    return f"{cls.__name__}__{sha256(description.encode()).hexdigest()[:12]}"


def to_verilog(component, name, platform):
    """Convert a component, its ports named by `hw.ports`; the same text every time."""
    elaboratable, ports = convertible(component, flatten_ports(component))
    text = verilog.convert(elaboratable, name=name, platform=platform, ports=ports,
                           emit_src=False, strip_internal_attrs=True)
    return _mend(text)


def _mend(text):
    """Mend what Yosys writes that other tools misread."""
    # The first line names the version of Yosys that wrote it.
    text = re.sub(r"\A/\*.*?\*/\s*", "", text)
    # A wire of no bits comes out as one of two, `[-1:0]`. It is declared, with its attributes, and
    # never used.
    text = re.sub(r"^(?:  \(\*.*\*\)\n)*  (?:wire|reg) \[-1:0\] .*;\n", "", text,
                  flags=re.MULTILINE)
    # A block that sets bits to a constant reads nothing, so it would never run. Yosys has other
    # blocks read a flag whose initial value starts them.
    count = 0

    def start(match):
        nonlocal count
        count += 1
        flag = f"\\$start${count} "
        return (f"  reg {flag} = 0;\n  always @* begin\n    if ({flag}) begin end\n"
                f"    {match.group(1)}\n  end\n")

    return re.sub(r"^  always @\*\n    (\S.* = \d+'\w+;)\n", start, text, flags=re.MULTILINE)
