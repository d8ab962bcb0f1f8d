"""What `help` of a chat model begins with, and the signature of its constructor."""

import inspect
import pydoc
import re
import textwrap
from typing import Any

import pytest

import langchain_autotools
from langchain_autotools.turn.model import names_of

CHAT_MODELS = [name for name in langchain_autotools.__all__ if re.fullmatch(r"(Azure)?Chat\w+", name)]
SCREEN = 36  # lines of a terminal window that is 80 columns wide


def first_screen(chat_model: type[Any]) -> str:
    """What is seen first of `help(chat_model)`."""
    text = pydoc.plain(pydoc.render_doc(chat_model))
    lines = [wrapped for line in text.split("\n") for wrapped in textwrap.wrap(line, 80) or [""]]
    return "\n".join(lines[:SCREEN])


@pytest.mark.parametrize("name", CHAT_MODELS)
def test_help_begins_with_what_a_person_needs(name: str) -> None:
    """What the class is, an example and the arguments that matter, each of which there is, are on the first screen."""
    chat_model = getattr(langchain_autotools, name)
    seen = first_screen(chat_model)
    assert f"model = {name}(" in seen and "Ask it with `invoke`" in seen
    listed = [word for line in re.findall(r"^ \|  - (.*?):", seen, re.MULTILINE) for word in re.findall(r"`(\w+)`", line)]
    assert {"tools", "temperature", "max_turns", "requires_approval"} <= set(listed)
    assert set(listed) <= set(inspect.signature(chat_model).parameters)
    assert "BaseCallbackHandler" not in seen and "pydantic" not in seen


@pytest.mark.parametrize("name", CHAT_MODELS)
def test_the_signature_has_every_argument(name: str) -> None:
    """Under the name that type checkers know, model and tools first, and none by position: notebooks complete names from it."""
    chat_model = getattr(langchain_autotools, name)
    parameters = inspect.signature(chat_model).parameters
    assert list(parameters)[:2] == ["model", "tools"]
    assert set(parameters) == {names_of(chat_model, field)[0] for field, info in chat_model.model_fields.items() if info.init is not False}
    assert {one.kind for one in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_a_class_of_ones_own_has_its_arguments_behind_model_and_tools() -> None:
    """What a subclass adds comes before what it inherits."""

    class ChatHouse(langchain_autotools.ChatOpenAI):
        """A house's model."""

        region: str = "north"

    assert list(inspect.signature(ChatHouse).parameters)[:3] == ["model", "tools", "region"]
    assert str(inspect.signature(ChatHouse)).startswith("(*, model, tools, region, ")
