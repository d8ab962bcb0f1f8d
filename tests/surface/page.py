"""Writes docs/partner_surface.md: in what our classes differ from the partner packages', by reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.partner.suites import REPOSITORY
from tests.partner.verdicts import STATED, Verdicts
from tests.surface.differences import Difference
from tests.surface.pairs import PAIRS
from tests.surface.rules import BETTER, SAME

PAGE = REPOSITORY / "docs" / "partner_surface.md"
PINS = Path(__file__).with_name("pins.txt")

HEAD = """# Beside the partner packages, by machine

Each class here is compared with the class of the same name of LangChain's partner package. Compared are every public name, constructor
argument and method, and what comes out of the same replies, whole and streamed, in messages, content blocks, usage, errors, callbacks,
structured output and copies. `python -m tests.surface` finds every difference; the reviewed list is `tests/surface/differences.csv`, and CI
fails where there is one that the list lacks, or one that is gone. What ours has besides (tools, limits, approvals, ...) is no difference.

Compared with: {releases}.
"""
TITLES = {
    STATED: "Otherwise, and stated",
    SAME: "Another form, the same purpose",
    BETTER: "More, or right where theirs is wrong",
}


def _releases() -> str:
    lines = PINS.read_text(encoding="utf-8").splitlines()
    return ", ".join(line.replace("==", " ") for line in lines if line.startswith("langchain-") and not line.startswith("langchain-core"))


def page(found: Sequence[Difference], verdicts: Verdicts) -> str:
    """The whole page."""
    of_rules: dict[tuple[str, str, str], set[str]] = {}
    for result, rule in verdicts.explained:
        of_rules.setdefault((rule.kind, rule.why, rule.page), set()).add(result.package)
    parts = [HEAD.format(releases=_releases())]
    for kind, title in TITLES.items():
        chosen = {key: pairs for key, pairs in of_rules.items() if key[0] == kind}
        if chosen:
            parts += [f"## {title}", "", "| what | where | page |", "|---|---|---|"]
            parts += [_line(key, pairs) for key, pairs in sorted(chosen.items())] + [""]
    return "\n".join(parts)


def _line(key: tuple[str, str, str], pairs: set[str]) -> str:
    _, why, page = key
    where = "everywhere" if len(pairs) >= len(PAIRS) - 2 else ", ".join(pair.name for pair in PAIRS if pair.name in pairs)
    return f"| {why} | {where} | {f'[{page}]({page})' if page else ''} |"
