"""Builds a release, writes its lists, or installs it in empty environments: docs/releasing.md."""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from langchain_autotools._version import DISTRIBUTION, __version__

from .installed import ENDS, PYTHONS, README, check
from .lists import FILES, REPOSITORY, SURFACE, store


def main() -> int:
    """Do what the options say; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.release", description="Build the wheel and the source distribution, and check them."
    )
    parser.add_argument("--write", action="store_true", help="write the stored lists: the files of a release and the public surface")
    parser.add_argument("--install", metavar="PYTHON", nargs="*", help="install what was built with these: python3.11 to python3.13")
    parser.add_argument("--ends", choices=ENDS, nargs="*", default=ENDS, help="at which ends of the ranges of the dependencies: both")
    parser.add_argument("--readme", choices=README, nargs="*", default=(), help="what of the README to run there too")
    parser.add_argument("--target", type=Path, default=REPOSITORY / "dist", help="the folder for what is built: dist")
    options = parser.parse_args()
    if options.write:
        return write()
    if options.install is None:
        return build(options.target)
    (sdist,) = options.target.glob("*.tar.gz")
    for line in check(sdist, options.install or PYTHONS, options.ends, options.readme):
        print(line, flush=True)
    return 0


def write() -> int:
    """Write both lists from what there is."""
    from .archives import tracked_files
    from .surface import surface

    lines, missing = surface()
    files = tracked_files()
    if missing or files is None:
        print("the lists are written in a git checkout, with the extra `durable`", file=sys.stderr)
        return 1
    store(SURFACE, lines)
    store(FILES, files)
    return 0


def build(target: Path) -> int:
    """Build a release into an empty folder, and say what is wrong with it."""
    from .archives import check

    shutil.rmtree(target, ignore_errors=True)
    wrong = list(check(target))
    print(*(path.name for path in sorted(target.iterdir())), *wrong, sep="\n")
    if not wrong:
        print("", *ways(target), sep="\n")
    return 1 if wrong else 0


def ways(target: Path) -> Iterator[str]:
    """Say how to install what was built: the package is on no index."""
    (wheel,) = target.glob("*.whl")
    yield "Install it from a checkout, a wheel file or `git+`; pip fetches the dependencies from its index:"
    yield "    pip install ."
    yield f"    pip install {wheel}"
    yield f"    pip install git+URL@v{__version__}"
    yield "For a machine that reaches no index, fetch the dependencies elsewhere and bring the folder along:"
    yield f"    pip download --dest wheels {wheel}"
    yield f"    pip install --no-index --find-links wheels {DISTRIBUTION}"


if __name__ == "__main__":
    sys.exit(main())
