"""The command line's entry point, with light imports, so that Ctrl-C prints one line from the start."""

import sys
from collections.abc import Sequence

__all__ = ["main"]

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: The words after the program's name; `sys.argv` if not given.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong use, 130 interrupted, 141 the reader of the output went away.
    """
    try:
        from .program import run

        return run(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        print("(interrupted)", file=sys.stderr)
        return _INTERRUPTED
