"""The run-time route scheduler. docs/scheduling.md, sections 4 to 6."""

from hw.streaming.scheduler.layouts import Event, LoadError
from hw.streaming.scheduler.scheduler import RouteScheduler

__all__ = ["Event", "LoadError", "RouteScheduler"]
