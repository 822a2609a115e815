"""Argument checks shared by the streaming units."""

from hw.config import StreamingConfig

__all__ = ["check_config"]


def check_config(owner: str, config: object) -> StreamingConfig:
    """Return ``config`` if it is a `StreamingConfig`, otherwise raise TypeError."""
    if not isinstance(config, StreamingConfig):
        raise TypeError(f"{owner} config must be a StreamingConfig, not {config!r}")
    return config
