"""The arguments of a model's constructor: their names, descriptions, types."""

import inspect
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, overload

from pydantic import AliasChoices, AliasPath, BaseModel, SecretStr

from ..executor.names import tool_name

MISTAKEN: Final = {"tool_timeout": "the time of a tool is that of its policy: default_policy=ToolPolicy(timeout=...)"}
"""Replacements for unknown argument names that are not near to the right one."""

_PER_CALL: Final = frozenset({"cancel", "resume"})
_VERSIONS: Final = "lc_versions"  # what LangChain notes in the metadata of every model


def names_of(model: type[BaseModel], field: str) -> tuple[str, ...]:
    """Return the names under which a constructor accepts a field, starting with that for type checkers.

    That is the alias where it is given as `alias`, and the field's own name where it is given as `validation_alias`.
    """
    info = model.model_fields[field]
    choices = info.validation_alias.choices if isinstance(info.validation_alias, AliasChoices) else [info.validation_alias]
    firsts = (alias.path[0] if isinstance(alias, AliasPath) else alias for alias in (info.alias, *choices))
    return tuple(dict.fromkeys((info.alias or field, field, *(first for first in firsts if isinstance(first, str)))))


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


# ----------------------------------------------------------------------------------- descriptions of fields, from the docstrings under them
#
# pydantic does the same with `use_attribute_docstrings`, by parsing the module once for each class: that is most of what an import costs.


_PACKAGE = __name__.partition(".")[0]

_CLASS_OR_FIELD = re.compile(
    r'^class (?P<class>\w+)|^    (?P<field>\w+): .*\n(?:(?: {8}| {4}[)\]}]).*\n)*    """(?P<text>(?s:.*?))"""',
    re.MULTILINE,
)


def describe_fields(model: type[BaseModel]) -> None:
    """Set the `description` of the fields that a class of this package declares."""
    if model.__module__.partition(".")[0] != _PACKAGE:
        return
    fields = model.model_fields
    for name, text in _docstrings(model.__module__).get(model.__name__, {}).items():
        if name in fields and fields[name].description is None:
            fields[name].description = text


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings under annotated names, by class and name; empty without the source."""
    try:
        source = sys.modules[module].__loader__.get_source(module)  # type: ignore[union-attr]
    except (AttributeError, ImportError, OSError):
        source = None
    found: dict[str, dict[str, str]] = {}
    inside = ""
    for match in _CLASS_OR_FIELD.finditer(source or ""):
        inside = match["class"] or inside
        if match["field"]:
            found.setdefault(inside, {})[match["field"]] = inspect.cleandoc(match["text"])
    return found


# ------------------------------------------------------------------------------- fields whose constructor accepts more types than they hold
#
# A key may be given as text and is held as a `SecretStr`.


Held = TypeVar("Held")
Given = TypeVar("Given")

if TYPE_CHECKING:

    class Converted(Generic[Held, Given]):
        """A field for type checkers, which use a descriptor's `__set__` as the constructor's parameter type."""

        @overload
        def __get__(self, instance: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> Held: ...
        def __get__(self, instance: object, owner: Any) -> Any: ...
        def __set__(self, instance: object, value: Given) -> None: ...

    Secret = Converted[SecretStr | None, SecretStr | str | None]
else:
    Secret = SecretStr | None
