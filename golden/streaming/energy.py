"""Energy of both routes: scheduling section 8.

SparKV (arXiv 2604.21231) is quoted with 2-3 W for the radio and 20-30 W for computing. Idle power
is ours.
"""

from dataclasses import dataclass, fields

__all__ = ["Powers"]


@dataclass(frozen=True, kw_only=True)
class Powers:
    """Watts while a route is busy, and of the rest of the device until the prompt is there."""

    radio: float = 2.5
    compute: float = 25.0
    idle: float = 0.0

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if not value >= 0:
                raise ValueError(f"Powers.{field.name} must be 0 or more, not {value!r}")

    def joules(self, *, stream_seconds, compute_seconds, total_seconds):
        return (
            self.radio * stream_seconds
            + self.compute * compute_seconds
            + self.idle * total_seconds
        )
