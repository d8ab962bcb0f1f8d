"""The arguments that the constructor of a model takes, under all their names."""

from collections.abc import Collection
from difflib import get_close_matches
from functools import lru_cache

from pydantic import AliasChoices, BaseModel

__all__ = ["argument_names", "names_of", "unknown_argument"]


def names_of(model: type[BaseModel], field: str) -> tuple[str, ...]:
    """The names under which a constructor takes a field, the one that type checkers know first.

    That is the alias where it is given as `alias`, and the field's own name where it is given as `validation_alias`.
    """
    info = model.model_fields[field]
    others = info.validation_alias.choices if isinstance(info.validation_alias, AliasChoices) else [info.validation_alias]
    names = (info.alias or field, field, *others)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


@lru_cache(maxsize=256)
def argument_names(model: type[BaseModel]) -> frozenset[str]:
    """All names of all arguments."""
    return frozenset(name for field in model.model_fields for name in names_of(model, field))


def unknown_argument(model: type[BaseModel], name: str, known: Collection[str], others: str = "") -> str:
    """That there is no argument of this name, what there is instead, and where others go."""
    near = get_close_matches(name, sorted(known), n=1)
    hints = [*([f"did you mean {near[0]!r}?"] if near else []), *([others] if others else [])]
    return f"{model.__name__} has no argument {name!r}" + (f": {' '.join(hints)}" if hints else "")
