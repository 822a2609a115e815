"""The stream vocabulary that every other unit is written in.

A stream transfers an item on each cycle in which ``valid`` and ``ready`` are both high. ``valid``
and ``payload`` hold until the transfer, and ``valid`` never waits for ``ready``.
"""

from .arbiter import Arbiter
from .bypass import BypassQueue
from .fork import Fork, Join
from .queue import Queue
from .skid import SkidBuffer
from .width import Downsizer, Upsizer

__all__ = ["Arbiter", "BypassQueue", "Downsizer", "Fork", "Join", "Queue", "SkidBuffer", "Upsizer"]
