"""The stored lists of a release: what each must equal, how a difference is printed, and the command that writes them."""

from collections.abc import Collection
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = Path(__file__).parent / "files.txt"
SURFACE = Path(__file__).parent / "surface.txt"
WRITE = "python -m tests.release --write"


def stored(path: Path) -> list[str]:
    """The lines of a stored list."""
    return path.read_text(encoding="utf-8").splitlines()


def store(path: Path, lines: Collection[str]) -> None:
    """Write a list, sorted."""
    path.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


def difference(path: Path, found: Collection[str], what: str) -> str:
    """The lines that are gone and those that are new, as text for people; empty where there are none.

    Args:
        path: The stored list.
        found: What there is.
        what: What a line stands for.
    """
    before, now = set(stored(path)), set(found)
    changes = sorted([*((line, "-") for line in before - now), *((line, "+") for line in now - before)])
    if not changes:
        return ""
    shown = "\n".join(f"{sign} {line}" for line, sign in changes)
    return f"{len(before - now)} {what} gone and {len(now - before)} new, against {path.name}:\n{shown}\nIf this is meant: {WRITE}"
