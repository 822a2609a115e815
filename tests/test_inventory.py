"""Each public hardware unit has its contract, its golden twin, and its tests.

`python -m tests.test_inventory` prints the table.
"""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest
from amaranth.lib import wiring

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = ("Latency", "Throughput", "Numerics", "Errors")

# A unit whose contract is that of what it wraps.
WRAPPERS = {"Once"}


def find_units():
    """Public component classes of hw, by name of module and class."""
    units = {}
    for path in sorted((ROOT / "hw").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        module = importlib.import_module(name)
        for class_name, cls in vars(module).items():
            if (inspect.isclass(cls) and issubclass(cls, wiring.Component)
                    and cls.__module__ == name and not class_name.startswith("_")):
                units[f"{name}.{class_name}"] = cls
    return units


UNITS = find_units()
NAMES = [name for name, cls in UNITS.items() if cls.__name__ not in WRAPPERS]


def imported_units(source):
    """Units that a file imports by name, so that classes of one name are told apart."""
    units = set(UNITS.values())
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hw":
            module = importlib.import_module(node.module)
            for alias in node.names:
                found = getattr(module, alias.name, None)
                if inspect.isclass(found) and found in units:
                    yield found


def parts_of(cls):
    """Units that the file of a unit imports, or defines beside it."""
    path = Path(inspect.getfile(cls))
    source = path.read_text(encoding="utf-8")
    yield from imported_units(source)
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    for other in UNITS.values():
        if other.__module__ == cls.__module__ and other.__name__ in used:
            yield other


@cache
def coverage(*folders):
    """How tests reach each unit: "own" if they name it, "part" if a unit they reach uses it."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    reached = {cls: "own" for path in paths
               for cls in imported_units(path.read_text(encoding="utf-8"))}
    todo = list(reached)
    while todo:
        for cls in parts_of(todo.pop()):
            if cls not in reached:
                reached[cls] = "part"
                todo.append(cls)
    return reached


def simulated():
    """Units that run in Amaranth's simulator."""
    return coverage("tests/hw")


def benched():
    """Units that run as Verilog; sim holds the harness of whole designs."""
    return coverage("tests/rtl", "sim")


def section(cls, title):
    """Text of a section of a unit's docstring, or None."""
    found = re.search(rf"\*\*{title}\*\*:?(.*?)(?:\n\s*\n|\Z)", cls.__doc__ or "", re.DOTALL)
    return found and " ".join(found.group(1).split())


def twins(cls):
    """Golden functions that the docstring names."""
    return re.findall(r"`+(golden(?:\.\w+)+)", section(cls, "Numerics") or "")


def resolve(dotted):
    """The object that a dotted name stands for."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(dotted)


@pytest.mark.parametrize("name", NAMES)
def test_contract_is_written_down(name):
    missing = [title for title in SECTIONS if not section(UNITS[name], title)]
    assert not missing, f"the docstring of {name} lacks {', '.join(missing)}"


@pytest.mark.parametrize("name", NAMES)
def test_says_what_its_numbers_equal(name):
    text = section(UNITS[name], "Numerics") or ""
    assert (twins(UNITS[name]) or "docs/numerics.md" in text
            or text.lower().startswith(("none", "exact"))), (
        f"**Numerics** of {name} must name a golden function or a section of docs/numerics.md, or "
        f"begin with 'none' or 'exact'")
    for twin in twins(UNITS[name]):
        resolve(twin)


@pytest.mark.parametrize("name", NAMES)
def test_has_a_test_in_the_simulator(name):
    assert UNITS[name] in simulated(), f"no test in tests/hw runs {name}"


@pytest.mark.parametrize("name", NAMES)
def test_runs_as_verilog(name):
    assert UNITS[name] in benched(), f"no bench in tests/rtl runs {name}"


def main():
    rows = [("unit", "golden twin", "test", "bench")]
    for name in NAMES:
        cls = UNITS[name]
        rows.append((name, ", ".join(twins(cls)) or "-", simulated().get(cls, "none"),
                     benched().get(cls, "none")))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
