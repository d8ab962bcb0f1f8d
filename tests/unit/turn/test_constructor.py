"""What a constructor calls its arguments."""

from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel, Field

from langchain_autotools import ConfigurationError
from langchain_autotools.testing import ScriptedChatModel
from langchain_autotools.turn.model import argument_names, given_arguments, names_of, tool_labels, unknown_argument


class Model(BaseModel):
    """A model with each kind of name."""

    plain: int = 0
    aliased: int = Field(0, alias="short")
    chosen: int = Field(0, validation_alias=AliasChoices("one", "other"))
    validated: int = Field(0, validation_alias="read")


def test_the_name_that_type_checkers_know_comes_first() -> None:
    """The alias, else the field's own; each once."""
    found = {field: names_of(Model, field) for field in Model.model_fields}
    assert found["plain"] == ("plain",)
    assert found["aliased"] == ("short", "aliased")
    assert found["chosen"] == ("chosen", "one", "other")
    assert found["validated"] == ("validated", "read")
    assert argument_names(Model) == {"plain", "short", "aliased", "chosen", "one", "other", "validated", "read"}


def test_an_unknown_name_is_told_the_nearest() -> None:
    """And where others go; neither where there is none."""
    known = argument_names(Model)
    assert unknown_argument(Model, "plane", known) == "Model has no argument 'plane': did you mean 'plain'?"
    assert unknown_argument(Model, "xyzzy", known) == "Model has no argument 'xyzzy'"
    assert unknown_argument(Model, "xyzzy", known, "others go there") == "Model has no argument 'xyzzy': others go there"


def test_only_a_models_metadata_loses_what_langchain_notes_in_it() -> None:
    """A key of that name in another argument is the caller's; metadata may be missing."""

    class Tagged(BaseModel):
        metadata: dict[str, Any] | None = None
        headers: dict[str, Any] = Field(default_factory=dict)

    noted = {"lc_versions": "1", "team": "blue"}
    given = Tagged(metadata=noted, headers=noted)
    assert list(given_arguments(given, given.__repr_args__())) == [("metadata", {"team": "blue"}), ("headers", noted)]
    given = Tagged(metadata=None, headers=noted)
    assert list(given_arguments(given, given.__repr_args__())) == [("headers", noted)]


def test_a_tool_is_called_by_its_own_name() -> None:
    """That of a function is the function's."""

    class Named:
        name = "named"

    def plain() -> None:
        """Do nothing."""

    assert tool_labels([Named(), plain]) == ["named", "plain"]


def test_the_first_of_several_unknown_names_is_told() -> None:
    """In the order of the alphabet, so that the error is the same each time."""
    with pytest.raises(ConfigurationError, match="no argument 'aaaaaa'"):
        ScriptedChatModel(zzzzzz=1, aaaaaa=2)  # type: ignore[call-arg]


def test_two_tools_of_one_name_cannot_be_bound() -> None:
    """Nor can a model tell which of them is meant."""
    tools = [{"name": "f", "description": text, "input_schema": {"type": "object"}} for text in ("one", "two")]
    with pytest.raises(ConfigurationError, match="f"):
        ScriptedChatModel(replies=["done"]).bind(tools=tools)
