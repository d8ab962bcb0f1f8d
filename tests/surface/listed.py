"""All that is probed, what is found, and the stored list of it: tests/surface/differences.csv."""

from __future__ import annotations

import csv
import io
import logging
import os
import ssl
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.partner.suites import REPOSITORY, Result
from tests.partner.verdicts import Verdicts, judge
from tests.surface import asked, described, named, replied
from tests.surface.differences import Difference, Probe, compare
from tests.surface.pairs import OURS, PAIRS, THEIRS, Pair, Stage
from tests.surface.rules import RULES

LIST = REPOSITORY / "tests" / "surface" / "differences.csv"
HEAD = ("verdict", "why", "section", "path", "theirs", "ours", "where")

OF_CLASSES: Mapping[str, Probe] = {"name": named.names, "argument": named.arguments, "fact": described.facts}
"""What depends on no wire."""
OF_WIRES: Mapping[str, Probe] = {
    "reply": replied.messages,
    "error": replied.failures,
    "callbacks": replied.callbacks,
    "cache": replied.cached_replies,
    "way": replied.other_ways,
    "bind": asked.bound,
    "structured": asked.structured,
    "spoilt": asked.spoilt_output,
}


@contextmanager
def alone() -> Iterator[None]:
    """Nothing is asked of the world, logged or warned of meanwhile."""
    os.environ["HTTPS_PROXY"] = "http://127.0.0.1:9"  # what theirs asks of the world fails the same everywhere
    ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment] # half the time, for a wire without TLS
    logging.disable(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def probed(pairs: Iterable[Pair] = PAIRS) -> Iterator[Difference]:
    """Every difference of every pair."""
    with alone():
        for pair in pairs:
            with Stage(pair, THEIRS) as theirs, Stage(pair, OURS) as ours:
                for section, probe in {**(OF_CLASSES if pair.first else {}), **(OF_WIRES if pair.wire else {})}.items():
                    yield from compare(section, (theirs, ours), probe)


def judged(found: Iterable[Difference]) -> Verdicts:
    """The differences with the rules that say why they are there."""
    return judge([Result(one.pair, one.where, "failed", one.where) for one in found], RULES)


def rows(found: Sequence[Difference], verdicts: Verdicts) -> list[tuple[str, ...]]:
    """The list: equal differences of all pairs, cases and ways on one line, with the verdict on them."""
    rules = {(result.package, result.id): rule for result, rule in verdicts.explained}
    lines: dict[tuple[str, ...], set[Difference]] = {}
    for one in found:
        rule = rules.get((one.pair, one.where))
        key = (rule.kind if rule else "?", rule.why if rule else "?", one.section, one.path, one.theirs, one.ours)
        lines.setdefault(key, set()).add(one)
    return [(*key, _places(differences)) for key, differences in sorted(lines.items())]


def _places(differences: Iterable[Difference]) -> str:
    """The pairs; behind each the cases and ways; those of several pairs once."""
    by_pair: dict[str, dict[str, set[str]]] = {}
    for one in differences:
        by_pair.setdefault(one.pair, {}).setdefault(one.case, set()).add(one.way)
    places: dict[str, list[str]] = {}
    for pair, cases in sorted(by_pair.items()):
        ways: dict[str, list[str]] = {}
        for case, of_case in sorted(cases.items()):
            ways.setdefault("+".join(sorted(of_case)), []).append(case)
        text = "; ".join(f"{'|'.join(of_ways)}{f' ({way})' if way else ''}" for way, of_ways in sorted(ways.items()))
        places.setdefault(text, []).append(pair)
    return " // ".join(f"{' '.join(pairs)}: {text}" for text, pairs in places.items())


def text_of(found: Sequence[Difference], verdicts: Verdicts) -> str:
    """The list as a file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([HEAD, *rows(found, verdicts)])
    return out.getvalue()


def news(found: Sequence[Difference], verdicts: Verdicts, stored: Path = LIST) -> list[str]:
    """In words: what the stored list lacks, and what it has that is gone."""
    before = {tuple(row) for row in csv.reader(stored.read_text(encoding="utf-8").splitlines())} - {HEAD}
    now = set(rows(found, verdicts))
    lines = [f"new: {_said(row)}" for row in sorted(now - before)] + [f"gone: {_said(row)}" for row in sorted(before - now)]
    return lines + verdicts.faults


def _said(row: tuple[str, ...]) -> str:
    verdict, why, section, path, theirs, ours, where = row
    return f"{section} {path}: theirs {theirs}, ours {ours} ({verdict}: {why}) at {where}"
