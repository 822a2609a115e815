"""Argument checks shared by the streaming units."""

from hw import checks
from hw.config import StreamingConfig

__all__ = ["check_config"]


def check_config(owner: str, config: object) -> StreamingConfig:
    """Return ``config`` if it is a `StreamingConfig`, otherwise raise TypeError."""
    return checks.check_config(owner, config, StreamingConfig)
