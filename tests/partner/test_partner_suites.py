"""LangChain's partner packages' own unit tests, with our classes under the packages' names."""

from pathlib import Path

import pytest

from tests.partner.page import PAGE, text_of
from tests.partner.rules import RULES
from tests.partner.suites import CLASSES, REPOSITORY, fetch, run
from tests.partner.verdicts import STATED, Rule, Verdicts, judge

pytestmark = [pytest.mark.partner, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """All their results, explained."""
    folders: dict[str, Path] = fetch(tmp_path_factory.mktemp("sdists"))
    assert sorted(folders) == sorted(CLASSES)
    return judge([result for package, folder in sorted(folders.items()) for result in run(package, folder)], RULES)


def test_every_failure_has_a_reason(verdicts: Verdicts) -> None:
    """A test of theirs that fails uses private internals, or there is a rule that says why."""
    assert [f"{result.package} {result.id}: {result.error[:300]}" for result in verdicts.unexplained] == []


def test_no_reason_is_stale(verdicts: Verdicts) -> None:
    """Every rule explains a failure, and no test that it names passes."""
    assert verdicts.stale == []


def test_the_page_says_what_came_of_them(verdicts: Verdicts) -> None:
    """docs/partner_tests.md has today's numbers."""
    assert PAGE.read_text(encoding="utf-8") == text_of(verdicts)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.kind == STATED], ids=lambda rule: rule.why)
def test_a_stated_difference_stands_on_its_page(rule: Rule) -> None:
    """The page that a rule names has the words that it quotes."""
    assert rule.says and rule.says in (REPOSITORY / "docs" / rule.page).read_text(encoding="utf-8")
