"""What a constructor calls its arguments."""

from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from langchain_autotools.turn.constructor import argument_names, given_arguments, names_of, unknown_argument


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
