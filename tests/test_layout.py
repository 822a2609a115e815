"""The shape of the project: what may import what, and which tests each unit has."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Package to the top-level packages of this project that it may import.
ALLOWED = {
    "hw": {"hw"},
    "golden": {"golden", "hw"},
    "sim": {"sim", "golden", "hw"},
}
# Golden models are a specification in NumPy: of hw they may see sizes and data that need no
# Amaranth.
GOLDEN_MAY_SEE = {"hw.config", "hw.presets", "hw.memory.ecc_code", "hw.memory.timings"}

SOURCES = sorted(path for package in ALLOWED for path in (ROOT / package).rglob("*.py"))


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_dependencies_point_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    own = {"hw", "golden", "sim", "tests"}
    for name in imported_modules(path):
        top = name.split(".")[0]
        assert top not in own - ALLOWED[package], f"{package} must not import {name}"
        if package == "golden" and top == "hw":
            assert any(f"{name}.".startswith(f"{module}.") for module in GOLDEN_MAY_SEE), name
        if package == "golden":
            assert top not in {"amaranth", "cocotb"}, name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_are_imported_one_by_one(path):
    assert not [name for name in imported_modules(path) if name.endswith(".*")]


def locked(path):
    """Names and versions in a lock file."""
    return re.findall(r"^([\w.-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.lock")), ids=lambda p: p.name)
def test_lock_files_are_exact(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines()
             if line and not line.startswith("#")]
    assert len(locked(path)) == len(lines) > 0


def test_all_imports_are_locked():
    """What a module imports comes with the project, with Python, or from a lock file."""
    paths = [*SOURCES, *(ROOT / "tests").rglob("*.py")]
    tops = {name.split(".")[0] for path in paths for name in imported_modules(path)}
    tops -= {*sys.stdlib_module_names, "hw", "golden", "sim", "tests"}
    have = {canonical(name) for path in ROOT.glob("requirements*.lock") for name, _ in locked(path)}
    providers = packages_distributions()
    assert {"amaranth", "cocotb", "numpy"} <= tops
    assert [top for top in sorted(tops)
            if not have & {canonical(name) for name in providers.get(top, [top])}] == []


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_all_dependencies_are_locked():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = set(re.findall(r'^  "([\w-]+)(?:\[\w+\])?[~>=]=', text, re.MULTILINE))
    wanted |= set(re.findall(r'^real = \["([\w-]+)', text, re.MULTILINE))
    have = {name for path in ROOT.glob("requirements*.lock") for name, _ in locked(path)}
    assert len(wanted) > 10
    assert wanted <= have
