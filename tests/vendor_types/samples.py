"""Sample data of every shape that a type allows: each leaf with a value of its own, each variant of a union in a sample."""

from __future__ import annotations

import base64
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from itertools import count
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel
from typing_extensions import TypeAliasType
from typing_extensions import is_typeddict as is_backported

_LISTS = (list, Sequence, Iterable)
_DICTS = (dict, Mapping)
_OF_PYTHON = ("type", "GenericAlias", "UnionType", "_UnionGenericAlias", "Union")
"""Names of the types of types: an SDK takes a type for a schema, JSON does not."""
_FIRST_CHOICES = ("completed", "STOP", "stop", "end_turn", "OUTCOME_OK")
_START = datetime(2026, 1, 1)


@dataclass(frozen=True, eq=False)
class Leaf:
    """A place of a sample that holds a value.

    Attributes:
        path: Its place in the type, lists as `[]`, the member of a union by its `type` or class.
        value: Its value in the sample.
        others: Other values that its type allows, where these are few: a value that is in many places is found by its change.
    """

    path: str
    value: Any
    others: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Rules:
    """What a sample has to observe so that a client reads it as a reply.

    Attributes:
        only: The values of leaves, by their paths.
        absent: Paths that the SDK fills in and the wire has not.
        one_of: Of a class, by name: the fields of which a value has one.
    """

    only: Mapping[str, Any] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    one_of: Mapping[str, frozenset[str]] = field(default_factory=dict)


def plain(sample: Any, changed: Mapping[Leaf, Any] | None = None) -> Any:
    """The JSON of a sample, with other values for some leaves."""
    if isinstance(sample, Leaf):
        return (changed or {}).get(sample, sample.value)
    if isinstance(sample, dict):
        return {key: plain(value, changed) for key, value in sample.items()}
    return [plain(value, changed) for value in sample] if isinstance(sample, list) else sample


def leaves(sample: Any) -> Iterator[Leaf]:
    """The leaves of a sample, in order."""
    if isinstance(sample, Leaf):
        yield sample
    elif isinstance(sample, dict | list):
        for value in sample.values() if isinstance(sample, dict) else sample:
            yield from leaves(value)


def alone(sample: Any, leaf: Leaf) -> Any:
    """A sample with one of its leaves, and the words that say of what kind it is and how it is called."""
    if isinstance(sample, dict):
        words = {key: value for key, value in sample.items() if not isinstance(value, Leaf | dict | list) or key == "name"}
        kept = words | {key: value for key, value in sample.items() if leaf in leaves(value)}
        return {key: alone(value, leaf) for key, value in kept.items()}
    return [alone(value, leaf) for value in sample if leaf in leaves(value)] if isinstance(sample, list) else sample


class Sampler:
    """Makes the samples of one type."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._numbers = count(1)

    def samples(self, annotation: Any, path: str = "", above: tuple[Any, ...] = ()) -> list[Any]:
        """Samples that together show each leaf of each variant; empty for a type that is inside itself."""
        annotation = _meant(annotation)
        if path in self._rules.only:
            value = self._rules.only[path]
            return [self._leaf(path, value, _choices(annotation) or (f"another+{value}",) * isinstance(value, str))]
        origin, args = get_origin(annotation), get_args(annotation)
        if isinstance(annotation, type) and annotation.__name__ in _OF_PYTHON:
            return []
        if origin is Annotated:
            return self.samples(args[0], path, above)
        if origin in (Union, types.UnionType):
            return self._of_union(args, path, above)
        if origin in _LISTS or annotation in _LISTS:
            return [[sample] for sample in self.samples(args[0] if args else Any, f"{path}[]", above)]
        if origin in _DICTS or annotation in _DICTS:
            return [{f"key{next(self._numbers)}": sample} for sample in self.samples(args[1] if args else Any, f"{path}{{}}", above)]
        if _class_of(annotation) is not None:
            return [] if annotation in above else self._of_model(annotation, path, (*above, annotation))
        choices = _choices(annotation)
        if len(choices) == 1:
            return [choices[0]]
        return [self._leaf(path, choices[0], choices) if choices else self._leaf(path, self._value(annotation))]

    def _leaf(self, path: str, value: Any, choices: tuple[Any, ...] = ()) -> Leaf:
        return Leaf(path, value, tuple(choice for choice in choices if choice != value))

    def _of_union(self, members: tuple[Any, ...], path: str, above: tuple[Any, ...]) -> list[Any]:
        members = tuple(member for member in members if member is not type(None) and not _is_unknown_word(member))
        if str in members:  # with words for what it usually says
            members = tuple(member for member in members if get_origin(member) is not Literal)
        models = [member for member in members if _class_of(member) is not None]
        found: list[Any] = []
        for member in members:
            inside = f"{path}<{name_of(member)}>" if member in models and len(models) > 1 else path
            found += self.samples(member, inside, above)
        return found

    def _of_model(self, model: type[Any], path: str, above: tuple[Any, ...]) -> list[Any]:
        columns: dict[str, list[Any]] = {}
        for key, annotation in fields_of(model).items():
            inside = f"{path}.{key}" if path else key
            made = [] if inside in self._rules.absent else self.samples(annotation, inside, above)
            if made:
                columns[key] = made
        apart = self._rules.one_of.get(model.__name__, frozenset())
        if not apart:
            return [
                {key: column[row % len(column)] for key, column in columns.items()}
                for row in range(max(map(len, columns.values()), default=1))
            ]
        shared = {key: column for key, column in columns.items() if key not in apart}
        rows = [(key, one) for key, column in columns.items() if key in apart for one in column]
        return [{key: one, **{name: column[row % len(column)] for name, column in shared.items()}} for row, (key, one) in enumerate(rows)]

    def _value(self, annotation: Any) -> Any:
        number = next(self._numbers)
        if annotation is int:
            return 100_000 + number
        if annotation is float:
            return number + 0.25
        if annotation is bytes:
            return base64.b64encode(f"v{number}z".encode()).decode()
        if annotation is datetime:
            return (_START + timedelta(minutes=number)).isoformat() + "Z"
        return f"v{number:06}z"  # which is base64 too


@cache
def fields_of(model: type[Any]) -> dict[str, Any]:
    """The fields of a class by their names on the wire, with their types."""
    if issubclass(model, BaseModel):
        return {known.alias or name: known.annotation for name, known in model.model_fields.items()}
    return {name.removesuffix("_"): annotation for name, annotation in get_type_hints(model).items()}


def _meant(annotation: Any) -> Any:
    """What an alias stands for, also one with parameters."""
    origin = get_origin(annotation)
    if isinstance(origin, TypeAliasType):
        return _meant(origin.__value__[get_args(annotation)])
    return _meant(annotation.__value__) if isinstance(annotation, TypeAliasType) else annotation


def _is_unknown_word(member: Any) -> bool:
    """Whether a union's member stands for the words that an SDK's release does not know yet."""
    return isinstance(member, type) and issubclass(member, str) and member is not str and not issubclass(member, Enum)


def _class_of(annotation: Any) -> type[Any] | None:
    annotation = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    is_class = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_class or is_typeddict(annotation) or is_backported(annotation) else None


def name_of(annotation: Any) -> str:
    """The name of a union's member: the one word of its `type`, else its class."""
    model = _class_of(annotation)
    assert model is not None
    words = _choices(fields_of(model).get("type"))
    return str(words[0]) if len(words) == 1 else model.__name__


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The values that a type allows, if these are few; the one first that a reply has that ended well."""
    annotation = _meant(annotation)
    if get_origin(annotation) is Annotated or get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None) and not _is_unknown_word(member)]
        return _choices(members[0]) if get_origin(annotation) is Annotated or len(members) == 1 else ()
    if annotation is bool:
        return (True, False)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        words = tuple(str(one.value) for one in annotation)
        found = tuple(word for word in words if not word.endswith("_UNSPECIFIED")) or words
    else:
        found = get_args(annotation) if get_origin(annotation) is Literal else ()
    return tuple(sorted(found, key=lambda one: one not in _FIRST_CHOICES))
