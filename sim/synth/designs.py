"""What is synthesized: whole units at ``tiny``, and each part of them at the larger presets."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hw.presets import PRESETS
from hw.units import UNITS

__all__ = ["Design", "designs"]


@dataclass(frozen=True)
class Design:
    """What makes a component, and the name of its row: figures are ``synth.<name>.<column>``."""

    name: str
    make: Callable[[], Any]


def _attention_parts(config):
    """The parts of the attention unit, by the name that the unit gives them."""
    from hw.attention.append import Append
    from hw.attention.encoder import Encoder
    from hw.attention.fetch import Fetch
    from hw.attention.front import Front
    from hw.attention.head import HeadSlice
    from hw.attention.normaliser import Normaliser
    from hw.attention.paging import Paging
    from hw.attention.registers import Registers
    from hw.attention.retrieval import Retrieval

    parts = {
        "append": Append, "encoder": Encoder, "fetch": Fetch, "front": Front, "head": HeadSlice,
        "normaliser": Normaliser, "paging": Paging, "registers": Registers,
        "retrieval": Retrieval,
    }
    return {name: partial(part, config) for name, part in parts.items()}


def _streaming_parts(config):
    """Those of the streaming engine."""
    from hw.streaming.copy import CopyEngine
    from hw.streaming.descriptors import Descriptors
    from hw.streaming.landing import Landing
    from hw.streaming.receive import ReceivePath
    from hw.streaming.registers import Registers
    from hw.streaming.reports import Reports
    from hw.streaming.requests import Requests
    from hw.streaming.scheduler.scheduler import RouteScheduler
    from hw.streaming.writer import PageWriter

    parts = {
        "copy": CopyEngine, "descriptors": Descriptors, "landing": Landing,
        "receive": ReceivePath, "registers": Registers, "reports": Reports,
        "requests": Requests, "scheduler": RouteScheduler, "writer": PageWriter,
    }
    return {name: partial(part, config) for name, part in parts.items()}


PARTS = {"attention": _attention_parts, "streaming": _streaming_parts}


def designs(preset):
    """The designs of a preset, in the order in which they are run.

    Raises
    ------
    ValueError
        There is no preset of that name.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, not {preset!r}")
    if preset == "tiny":
        return [Design(f"{unit}.{preset}", partial(make, PRESETS[preset]))
                for unit, make in UNITS.items()]
    return [Design(f"{unit}.{preset}.{name}", part)
            for unit, parts in PARTS.items()
            for name, part in parts(getattr(PRESETS[preset], unit)).items()]
