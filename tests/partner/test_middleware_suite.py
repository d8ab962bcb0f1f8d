"""LangChain's own tests of its middleware, with models of ours in place of agents."""

import pytest

from tests.partner.middleware_suite import PAGE, RULES, text_of, verdicts
from tests.partner.suites import REPOSITORY
from tests.partner.verdicts import Rule, Verdicts

pytestmark = [pytest.mark.partner, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def found() -> tuple[Verdicts, int]:
    """What became of the tests."""
    return verdicts()


def test_every_failure_has_a_reason(found: tuple[Verdicts, int]) -> None:
    """What fails is named, and no reason is stale."""
    assert [f"{one.id}: {one.error[:300]}" for one in found[0].unexplained] == []
    assert found[0].stale == []


def test_the_page_says_what_came_of_them(found: tuple[Verdicts, int]) -> None:
    """docs/middleware_tests.md is what the command writes."""
    assert PAGE.read_text(encoding="utf-8") == text_of(*found)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.why)
def test_a_reason_stands_on_its_page(rule: Rule) -> None:
    """The page that a rule names has the words that it quotes."""
    assert rule.says in (REPOSITORY / "docs" / rule.page).read_text(encoding="utf-8")
