"""What is synthesized: the whole unit at ``tiny``, and each part of it at the larger presets."""

from dataclasses import dataclass
from typing import Any

from hw.presets import PRESETS

__all__ = ["Design", "designs"]


@dataclass(frozen=True)
class Design:
    """A component and the name of its row: figures are ``synth.<name>.<column>``."""

    name: str
    component: Any


def _parts(config):
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

    return {
        "append": Append, "encoder": Encoder, "fetch": Fetch, "front": Front, "head": HeadSlice,
        "normaliser": Normaliser, "paging": Paging, "registers": Registers,
        "retrieval": Retrieval,
    }


def designs(preset):
    """The designs of a preset, in the order in which they are run.

    Raises
    ------
    ValueError
        There is no preset of that name.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, not {preset!r}")
    from hw.attention.unit import AttentionUnit

    config = PRESETS[preset].attention
    if preset == "tiny":
        return [Design(f"attention.{preset}", AttentionUnit(config))]
    return [Design(f"attention.{preset}.{name}", part(config))
            for name, part in _parts(config).items()]
