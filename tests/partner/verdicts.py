"""What becomes of each failed test: it uses private internals, differs as our pages say, or is a gap; else it is unexplained."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from .suites import REPOSITORY, Result

PRIVATE = "private internals"
STATED = "stated difference"
GAP = "gap"


@dataclass(frozen=True)
class Rule:
    """Why certain tests fail.

    Attributes:
        kind: `PRIVATE`, `STATED` or `GAP`.
        why: The reason, in words of the page.
        package: The partner package; "" for every one.
        tests: Patterns of test ids. Each must fail.
        error: A regular expression for the error, in place of ids.
        page: The page that states the difference, and `says`, words that are there.
    """

    kind: str
    why: str
    package: str = ""
    tests: tuple[str, ...] = ()
    error: str = ""
    page: str = ""
    says: str = ""

    def covers(self, result: Result) -> bool:
        """Whether it speaks of this test."""
        if self.package not in ("", result.package):
            return False
        return self.names(result) or bool(self.error and re.search(self.error, result.error))

    def names(self, result: Result) -> bool:
        """Whether it names this test."""
        return any(fnmatchcase(result.id, pattern) for pattern in self.tests)


USES_PRIVATE = Rule(PRIVATE, "uses names that begin with an underscore")


@dataclass
class Verdicts:
    """All results, each failure with the rule that explains it; `sent` counts those that read what our classes send."""

    explained: list[tuple[Result, Rule]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    sent: dict[str, Counter[str]] = field(default_factory=dict)


def judge(results: Sequence[Result], rules: Sequence[Rule], *, whole: bool = True) -> Verdicts:
    """Explain every failure. A fault is one without a reason, and a reason that holds no more; of reasons for all packages, if `whole`."""
    verdicts = Verdicts(faults=unsaid(rules))
    for result in results:
        rule = USES_PRIVATE if result.private else next((rule for rule in rules if rule.covers(result)), None)
        if result.outcome != "failed":
            kind = result.outcome
        elif rule:
            kind = rule.kind
            verdicts.explained.append((result, rule))
        else:
            kind = "unexplained"
            verdicts.faults.append(unexplained(result))
        verdicts.outcomes.setdefault(result.package, Counter())[kind] += 1
        if result.sent:
            verdicts.sent.setdefault(result.package, Counter())[kind] += 1
    used, tried = {id(rule) for _, rule in verdicts.explained}, {result.package for result in results}
    idle = (rule for rule in rules if id(rule) not in used and (rule.package in tried or (whole and not rule.package)))
    verdicts.faults += [f"explains nothing: {rule.package} {rule.why}" for rule in idle]
    passed = [result for result in results if result.outcome == "passed"]
    named = ((rule, result) for rule in rules for result in passed if rule.package in ("", result.package))
    verdicts.faults += [f"passes: {result.package} {result.id}" for rule, result in named if rule.names(result)]
    return verdicts


def unexplained(result: Result) -> str:
    """What is printed of a failure without a reason."""
    return f"no reason: {result.package} {result.id}: {result.error[:300]}"


def unsaid(rules: Iterable[Rule]) -> list[str]:
    """The differences that their pages do not state, in the words that the rules quote."""
    stated = [rule for rule in rules if rule.page or rule.kind == STATED]
    return [f"{rule.page} lacks {rule.says!r}: {rule.why}" for rule in stated if not rule.says or rule.says not in _text_of(rule.page)]


def _text_of(page: str) -> str:
    return (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
