"""Writes docs/partner_tests.md from what the partner packages' tests came to."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from .suites import REPOSITORY, SDISTS
from .verdicts import GAP, PRIVATE, STATED, Verdicts

PAGE = REPOSITORY / "docs" / "partner_tests.md"
COLUMNS = ("passed", PRIVATE, STATED, GAP)

HEAD = """# The partner packages' own tests

The unit tests that LangChain's partner packages ship for their chat models, run with our classes under the packages' names:
`pytest -m partner tests/partner` fetches the published sources, runs their tests and checks this page (`python -m tests.partner` writes
it). Tests of other things (embeddings, text completion, middleware, other classes) are left out, and so are skipped ones.

*private internals*: the test uses a name that begins with an underscore, or replaces something inside the partner's own modules. *stated
difference*: the pages say why ours does otherwise. *gap*: ours could do it and does not yet.
"""
SENT = """
## What is really sent

Many tests call a private helper that builds a request, `_get_request_payload` above all. Here such a test reads what our class sends:
the model is invoked, and the request is taken where it would leave. Of the {tests:,} tests that use private names, {sent:,} are read so,
and {passed:,} of these pass; why the others fail stands below. {private:,} stay behind the curtain.
"""


def release_of(package: str) -> str:
    """The release that is tried."""
    lines = SDISTS.read_text(encoding="utf-8").splitlines()
    return next(line.split()[0].partition("==")[2] for line in lines if line.startswith(package.replace("_", "-") + "=="))


def table(outcomes: Mapping[str, Counter[str]]) -> list[str]:
    """What tests came to, package by package."""
    lines = ["| package | tests | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * (len(COLUMNS) + 1)]
    for package, counts in sorted(outcomes.items()):
        numbers = [counts[column] for column in COLUMNS]
        name = f"{package.replace('_', '-')} {release_of(package)}"
        lines.append("| " + " | ".join([name, str(sum(numbers)), *map(str, numbers)]) + " |")
    return lines


def sent_of(verdicts: Verdicts) -> str:
    """What the tests came to that read what is sent, in words."""
    everywhere, sent = (sum(counts, Counter()) for counts in (verdicts.outcomes.values(), verdicts.sent.values()))
    read = sum(sent[column] for column in COLUMNS)
    private = everywhere[PRIVATE]
    return SENT.format(tests=private + read - sent[PRIVATE], sent=read, passed=sent["passed"], private=private)


def text_of(verdicts: Verdicts) -> str:
    """The whole page."""
    parts = [HEAD, *table(verdicts.outcomes), sent_of(verdicts), *table(verdicts.sent)]
    for kind, title in ((STATED, "Stated differences"), (GAP, "Gaps")):
        found = Counter((result.package, rule.why, rule.page) for result, rule in verdicts.explained if rule.kind == kind)
        if found:
            parts += ["", f"## {title}", "", "| package | tests | why | page |", "|---|---:|---|---|"]
        for (package, why, page), number in sorted(found.items()):
            link = f"[{page}]({page})" if page else ""
            parts.append(f"| {package.replace('_', '-')} | {number} | {why} | {link} |")
    return "\n".join(parts) + "\n"


def write(verdicts: Verdicts, path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(text_of(verdicts), encoding="utf-8")
