"""Writes docs/partner_tests.md from what the partner packages' tests came to."""

import tempfile
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from .rules import RULES
from .suites import CLASSES, REPOSITORY, SDISTS, fetch, release_of, run, settle
from .verdicts import GAP, PRIVATE, STATED, Verdicts, judge

PAGE = REPOSITORY / "docs" / "partner_tests.md"
COLUMNS = ("passed", PRIVATE, STATED, GAP)

HEAD = """# The partner packages' own tests

The unit tests that LangChain's partner packages ship for their chat models, run with our classes under the packages' names:
`python -m tests.partner` fetches the published sources, runs their tests and writes this page. Tests of other things (embeddings, text
completion, middleware, other classes) are left out, and so are skipped ones.

*private internals*: the test uses a name that begins with an underscore, or replaces something inside the partner's own modules. *stated
difference*: the pages say why ours does otherwise. *gap*: ours could do it and does not yet.
"""
SENT = """
## What is really sent

Many tests call a private helper that builds a request, `_get_request_payload` above all. Here such a test reads what our class sends:
the model is invoked, and the request is taken where it would leave. Of the {tests:,} tests that use private names, {sent:,} are read so,
and {passed:,} of these pass; below is why the others fail. {private:,} stay behind the curtain.
"""


def table(outcomes: Mapping[str, Counter[str]], releases: Mapping[str, str]) -> list[str]:
    """What tests came to, package by package."""
    lines = ["| package | tests | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * (len(COLUMNS) + 1)]
    for package, counts in sorted(outcomes.items()):
        numbers = [counts[column] for column in COLUMNS]
        name = f"{package.replace('_', '-')} {releases[package]}"
        lines.append("| " + " | ".join([name, str(sum(numbers)), *map(str, numbers)]) + " |")
    return lines


def sent_of(verdicts: Verdicts) -> str:
    """What the tests came to that read what is sent, in words."""
    everywhere, sent = (sum(counts, Counter()) for counts in (verdicts.outcomes.values(), verdicts.sent.values()))
    read = sum(sent[column] for column in COLUMNS)
    private = everywhere[PRIVATE]
    return SENT.format(tests=private + read - sent[PRIVATE], sent=read, passed=sent["passed"], private=private)


def text_of(verdicts: Verdicts, releases: Mapping[str, str]) -> str:
    """The whole page."""
    parts = [HEAD, *table(verdicts.outcomes, releases), sent_of(verdicts), *table(verdicts.sent, releases)]
    for kind, title in ((STATED, "Stated differences"), (GAP, "Gaps")):
        found = Counter((result.package, rule.why, rule.page) for result, rule in verdicts.explained if rule.kind == kind)
        if found:
            parts += ["", f"## {title}", "", "| package | tests | why | page |", "|---|---:|---|---|"]
        for (package, why, page), number in sorted(found.items()):
            link = f"[{page}]({page})" if page else ""
            parts.append(f"| {package.replace('_', '-')} | {number} | {why} | {link} |")
    return "\n".join(parts) + "\n"


def report(packages: Collection[str] = CLASSES, *, writes: bool, newest: bool) -> list[str]:
    """Run these packages' tests, print the table and return what is wrong. Write the page, or compare it; both take all packages."""
    with tempfile.TemporaryDirectory() as folder:
        places = fetch(Path(folder), SDISTS, packages, newest=newest)
        releases = {package: release_of(place) for package, place in places.items()}
        results = [result for package, place in sorted(places.items()) for result in run(package, place)]
    whole = len(places) == len(CLASSES)
    found = judge(results, RULES, whole=whole)
    print(*table(found.outcomes, releases), sep="\n", flush=True)
    if not whole or newest:
        return found.faults
    return found.faults + settle(PAGE, text_of(found, releases), writes=writes)
