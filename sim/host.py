"""Run a model inside this Python process.

cocotb usually starts Python inside the simulator, for which it needs Python's shared library. The
``python3`` package of Debian and Ubuntu has none, only the executable. There the model is built as
a shared library instead, and this script loads it: the symbols that cocotb looks for are then those
of the running executable.
"""

import ctypes
import sys
from pathlib import Path

__all__ = ["write_launcher"]

_LAUNCHER = '#!/bin/sh\nexec "{python}" "{host}" "{model}" "$@"\n'


def write_launcher(path, model):
    """Write a command that runs a model, a shared library, as its executable would run."""
    path.write_text(_LAUNCHER.format(python=sys.executable, host=Path(__file__).resolve(),
                                    model=model), encoding="utf-8")
    path.chmod(0o755)


def main():
    # PyDLL keeps the interpreter lock, as cocotb expects to hold it when it starts.
    library = ctypes.PyDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
    arguments = [argument.encode() for argument in sys.argv[1:]]
    library.run_model(len(arguments), (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None))


if __name__ == "__main__":
    main()
