"""Write units as Verilog, each with a JSON sidecar that tells its ports and parameters.

::

    python -m hw.emit --preset tiny [--unit attention] [--out build/rtl]

writes ``build/rtl/tiny/attention.v`` and ``build/rtl/tiny/attention.json``. The same input gives
the same bytes on every run.
"""

import argparse
import json
from dataclasses import asdict, is_dataclass
from pathlib import Path

from amaranth.lib import wiring

from hw import __version__
from hw.platform import VerilogPlatform, constructor_arguments, to_verilog
from hw.ports import describe_shape, flatten_ports
from hw.presets import PRESETS
from hw.units import UNITS

__all__ = ["emit", "write_unit"]


def emit(component, *, name):
    """Convert a component, with all that it instantiates, to Verilog and a sidecar.

    Parameters
    ----------
    component : wiring.Component
        The unit. Only its ``sync`` domain is driven from outside, through ``clk`` and ``rst``.
    name : str
        Name of the top module.

    Returns
    -------
    tuple of str and dict
        The Verilog text, and the sidecar:

        - ``name``, ``version``;
        - ``parameters``: the constructor's arguments;
        - ``ports``: list of ``name``, ``direction`` (``"input"`` or ``"output"``), ``stream`` where
          the port is part of one, and the description of `hw.ports.describe_shape`;
        - ``modules``: names of the shared modules in the file.
    """
    platform = VerilogPlatform()
    top = to_verilog(component, name, platform)
    text = "\n".join(filter(None, [
        f"// kvsilicon {__version__}, unit {name}. Generated: change the source, not this file.\n",
        platform.modules(), top]))
    sidecar = {
        "name": name,
        "version": __version__,
        "parameters": {key: _to_json(value)
                       for key, value in constructor_arguments(component).items()},
        "ports": [_describe_port(port) for port in flatten_ports(component)],
        "modules": platform.module_names,
    }
    return text, sidecar


def _describe_port(port):
    description = {"name": port.name, "direction": "input" if port.is_input else "output"}
    if port.stream is not None:
        description["stream"] = port.stream
    return {**description, **describe_shape(port.shape)}


def _to_json(value):
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    if isinstance(value, wiring.Component):
        return {"unit": type(value).__name__,
                **{key: _to_json(item) for key, item in constructor_arguments(value).items()}}
    # What is left are shapes.
    return describe_shape(value)


def write_unit(component, *, name, folder):
    """Write ``<name>.v`` and ``<name>.json`` into a folder, and return the path of the former."""
    text, sidecar = emit(component, name=name)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    verilog_path = folder / f"{name}.v"
    verilog_path.write_text(text, encoding="utf-8")
    sidecar_text = json.dumps(sidecar, indent=2) + "\n"
    verilog_path.with_suffix(".json").write_text(sidecar_text, encoding="utf-8")
    return verilog_path


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m hw.emit", description="Write units as Verilog with a JSON sidecar each.")
    parser.add_argument("--preset", choices=PRESETS, action="append",
                        help="configuration to emit; may be repeated (default: all)")
    parser.add_argument("--unit", choices=UNITS, action="append",
                        help="unit to emit; may be repeated (default: all)")
    parser.add_argument("--out", type=Path, default=Path("build/rtl"),
                        help="folder to write to (default: %(default)s)")
    options = parser.parse_args(arguments)
    for preset in options.preset or PRESETS:
        for unit in options.unit or UNITS:
            component = UNITS[unit](PRESETS[preset])
            print(write_unit(component, name=unit, folder=options.out / preset))


if __name__ == "__main__":
    main()
