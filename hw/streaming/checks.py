"""Argument checks shared by the streaming units."""

from hw.config import StreamingConfig

__all__ = ["check_config", "check_fixed_rate"]


def check_config(owner: str, config: object) -> StreamingConfig:
    """Return ``config`` if it is a `StreamingConfig`, otherwise raise TypeError."""
    if not isinstance(config, StreamingConfig):
        raise TypeError(f"{owner} config must be a StreamingConfig, not {config!r}")
    return config


def check_fixed_rate(owner: str, config: object) -> StreamingConfig:
    """Return ``config`` if all its formats are of fixed rate, otherwise raise ValueError."""
    config = check_config(owner, config)
    if config.huffman_bits:
        raise ValueError(
            f"{owner} config.formats must be fixed-rate formats, not {config.formats!r}")
    return config
