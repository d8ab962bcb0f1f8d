"""What a constructor calls its arguments."""

from pydantic import AliasChoices, BaseModel, Field

from langchain_autotools.turn.constructor import argument_names, names_of, unknown_argument


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
