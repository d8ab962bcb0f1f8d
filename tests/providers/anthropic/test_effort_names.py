"""The names of `ChatAnthropic`'s effort."""

from typing import Any

import pytest

from langchain_autotools import ChatAnthropic


@pytest.mark.parametrize("name", ["effort", "reasoning_effort"])
def test_the_effort_has_both_names(name: str) -> None:
    """The effort is given and read by the vendor's name and by LangChain's."""
    given: dict[str, Any] = {name: "high"}
    model = ChatAnthropic(model="claude-opus-5", **given)
    assert (model.effort, model.reasoning_effort) == ("high", "high")
