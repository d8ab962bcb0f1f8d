"""LangChain's own test suites, with the mixin before their chat models."""

import pytest

from tests.partner.core_suites import RULES, Outcome, outcomes, wrong
from tests.partner.suites import REPOSITORY
from tests.partner.verdicts import Rule

pytestmark = [pytest.mark.partner, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def found() -> list[Outcome]:
    """All suites."""
    return outcomes()


def test_the_page_says_what_came_of_them(found: list[Outcome]) -> None:
    """What fails with the mixin alone has a reason, and docs/core_tests.md names it and nothing else."""
    assert wrong(found) == []


def test_no_reason_is_stale(found: list[Outcome]) -> None:
    """Every rule explains a failure."""
    failed = [result for one in found for result in one.failed]
    assert [rule.why for rule in RULES if not any(rule.covers(result) for result in failed)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.why)
def test_a_reason_stands_on_its_page(rule: Rule) -> None:
    """The page that a rule names has the words that it quotes."""
    assert rule.says in (REPOSITORY / "docs" / rule.page).read_text(encoding="utf-8")
