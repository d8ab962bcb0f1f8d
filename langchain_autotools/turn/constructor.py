"""The arguments of a model's constructor under all their names, and the given ones for its repr."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel

from ..executor.injection import aliases_of
from ..executor.names import tool_name

_PER_CALL: Final = frozenset({"cancel", "resume"})
MISTAKEN: Final = {"tool_timeout": "the time of a tool is that of its policy: default_policy=ToolPolicy(timeout=...)"}
"""Replacements for unknown argument names that are not near to the right one."""
_VERSIONS: Final = "lc_versions"  # what LangChain notes in the metadata of every model


def names_of(model: type[BaseModel], field: str) -> tuple[str, ...]:
    """Return the names under which a constructor accepts a field, starting with that for type checkers.

    That is the alias where it is given as `alias`, and the field's own name where it is given as `validation_alias`.
    """
    info = model.model_fields[field]
    return tuple(dict.fromkeys((info.alias or field, field, *aliases_of(info))))


@lru_cache(maxsize=256)
def argument_names(model: type[BaseModel]) -> frozenset[str]:
    """Return all names of all arguments."""
    return frozenset(name for field in model.model_fields for name in names_of(model, field))


def unknown_argument(model: type[BaseModel], name: str, known: Collection[str], others: str = "") -> str:
    """Return the error text for an unknown argument, with the nearest known one.

    Args:
        model: The model's class.
        name: The name that was given.
        known: The names that there are.
        others: A description of where other arguments go; "" for nowhere.
    """
    if name in _PER_CALL:
        return f"{model.__name__} has no argument {name!r}: it belongs to one call: give it to invoke, stream or their asynchronous twins"
    if name in MISTAKEN:
        return f"{model.__name__} has no argument {name!r}: {MISTAKEN[name]}"
    near = get_close_matches(name, sorted(known), n=1)
    hints = [*([f"did you mean {near[0]!r}?"] if near else []), *([others] if others else [])]
    return f"{model.__name__} has no argument {name!r}" + (f": {' '.join(hints)}" if hints else "")


def given_arguments(model: BaseModel, shown: Iterable[tuple[str | None, Any]]) -> Iterator[tuple[str | None, Any]]:
    """Yield the arguments that a model was given, under the names for type checkers.

    Args:
        model: The model.
        shown: The names and values of fields for a repr. The long profile and empty values are omitted.
    """
    for name, value in shown:
        if name == "metadata" and isinstance(value, Mapping):
            value = {key: inner for key, inner in value.items() if key != _VERSIONS}
        is_field = name in type(model).model_fields
        if is_field and (name == "profile" or name not in model.model_fields_set or value is None or value in ({}, [], ())):
            continue
        yield (names_of(type(model), name)[0] if name and is_field else name), value


def tool_labels(tools: Any) -> list[str]:
    """Return the names of tools in any form; for a builtin tool without one, its type."""
    return [*map(str, tools)] if isinstance(tools, Mapping) else [_tool_label(tool) for tool in tools or ()]


def _tool_label(tool: object) -> str:
    if isinstance(tool, Mapping):
        return tool_name(tool) or str(next(iter(tool), "tool"))
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))
