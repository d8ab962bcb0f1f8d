"""What type checkers read of the package's root, made from its tables of names: `python -m tests.stub --write`."""

import argparse
from pathlib import Path

import langchain_autotools

STUB = Path(str(langchain_autotools.__file__)).with_suffix(".pyi")


def stub() -> str:
    """The text of `__init__.pyi`: each name, the deprecated ones too, imported from its module."""
    homes = sorted({**langchain_autotools._HOME, **langchain_autotools._FORMER}.items(), key=lambda item: (item[1], item[0]))
    lines = [f"from .{home} import {name} as {name}" for name, home in homes]
    return "\n".join(["# Made by `python -m tests.stub --write`.", "", "from ._version import __version__ as __version__", *lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.stub", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write it, rather than print it")
    if parser.parse_args().write:
        STUB.write_text(stub(), encoding="utf-8")
    else:
        print(stub(), end="")
