"""Runs the tests of LangChain's packages with our classes: `python -m tests.partner`, with the extra `partner` and a package index.

All of them, or those of a page or a package. Writes docs/core_tests.md, docs/partner_tests.md and docs/middleware_tests.md (the second
needs all of its packages), says what has no reason there, and fails where there is any. With `--check` the pages are compared, and with
`--newest` it is the tests of the newest releases in place of the pinned ones; then nothing is written.
"""

import argparse
import sys
from collections.abc import Callable, Collection

from . import core_suites, middleware_suite, partner_suites
from .suites import CLASSES

PAGES: dict[str, tuple[Collection[str], Callable[..., list[str]]]] = {
    "core": (core_suites.TRIED, core_suites.report),
    "partners": (CLASSES, partner_suites.report),
    "middleware": ((), middleware_suite.report),
}
"""The packages of each page, and what runs their tests."""


def main() -> int:
    """Run the suites that are asked for."""
    names = [*PAGES, *(name for packages, _ in PAGES.values() for name in packages)]
    parser = argparse.ArgumentParser(prog="python -m tests.partner")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; all of them by default")
    parser.add_argument("--check", action="store_true", help="compare with the pages in place of writing them")
    parser.add_argument("--newest", action="store_true", help="the tests of the newest releases, compared with the pages")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(names):
        parser.error(f"no suite: {', '.join(sorted(unknown))}")
    faults: list[str] = []
    for page, (packages, report) in PAGES.items():
        whole = not asked.names or page in asked.names
        some = [name for name in packages if whole or name in asked.names]
        if whole or some:
            faults += report(some, writes=not (asked.check or asked.newest), newest=asked.newest)
    print(*faults, sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
