"""Command line of the capture: ``python -m sim.capture --help``."""

import argparse
import sys
from pathlib import Path

import numpy as np

from sim.trace import SHIPPED_TRACE, save_trace

from . import HEADS, QUERIES, MiniLM, capture
from .minilm import HEAD_COUNT, LAYER_COUNT, MAX_TOKENS

_TEXT = SHIPPED_TRACE.parent / "prose.txt"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m sim.capture",
        description="Capture queries, keys and values of all-MiniLM-L6-v2 reading a text. Without "
                    "options, regenerates the trace that ships with the project.")
    parser.add_argument("--text", type=Path, default=_TEXT, metavar="FILE",
                        help="UTF-8 text to read (default: the project's own prose)")
    parser.add_argument("--output", type=Path, default=SHIPPED_TRACE, metavar="FILE.npz",
                        help="trace to write (default: the shipped one)")
    parser.add_argument("--layers", type=int, nargs="+", default=range(LAYER_COUNT), metavar="N",
                        help=f"layers to keep, of 0 to {LAYER_COUNT - 1} (default: all)")
    parser.add_argument("--heads", type=int, nargs="+", default=HEADS, metavar="N",
                        help=f"heads of each, of 0 to {HEAD_COUNT - 1} "
                             f"(default: {' '.join(map(str, HEADS))})")
    parser.add_argument("--tokens", type=int, default=MAX_TOKENS, metavar="N",
                        help=f"tokens to read (default: {MAX_TOKENS})")
    parser.add_argument("--queries", type=int, default=QUERIES, metavar="N",
                        help=f"queries per head, of evenly spaced tokens (default: {QUERIES})")
    options = parser.parse_args(arguments)
    try:
        trace = capture(MiniLM.from_package(), options.text.read_text(encoding="utf-8"),
                        layers=options.layers, heads=options.heads, tokens=options.tokens,
                        queries=options.queries)
        # float16 keeps 11 significant bits, four more than the 8-bit rows that the hardware stores.
        save_trace(options.output, trace, dtype=np.float16)
    except (ModuleNotFoundError, OSError, ValueError) as error:
        sys.exit(f"sim.capture: {error}")
    print(f"{options.output}: {trace.kv_heads} heads, {trace.token_count} tokens, "
          f"{trace.query_count} queries per head, {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
