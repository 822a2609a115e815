"""The streaming engine: its schedules, and its hardware in simulation."""

import json

from sim.streaming import copy_use, format_use, huffman_rate, optimum, schedule_error, ttft
from sim.tools import BUILD

__all__ = ["GROUPS"]

FOLDER = BUILD / "bench" / "streaming"


def _figures(main, name):
    main(["--output", str(FOLDER)])
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))["figures"]


def against_optimum():
    """The planned schedule over the true optimum of small random cases."""
    return _figures(optimum.main, "optimum.json")


def first_token():
    """Time to first token, and energy, against the baselines on varying links."""
    return _figures(ttft.main, "ttft.json")


GROUPS = {
    "optimum": against_optimum,
    "ttft": first_token,
    "copies": copy_use.measure,
    "formats": format_use.measure,
    "huffman": huffman_rate.measure,
    "schedules": schedule_error.schedule_error,
}
