"""How a schema reads arguments: the keys under which each field is read."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from json import dumps
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import create_model as create_model_v1
from typing_extensions import is_typeddict

from ..strict_json import is_finite
from .signatures import NOWHERE, Signature, annotations_of, source_of, unaliased

Path = tuple[int | str, ...]
"""Keys, from the outside in."""

# ---------------------------------------------------------------------------------------------- schemas


@dataclass(frozen=True)
class ReadAs:
    """How a schema reads an argument.

    Attributes:
        field: The field's name.
        annotation: Its type.
        required: Whether it must be given.
        paths: The keys under which it is read, the preferred one first.
    """

    field: str
    annotation: Any
    required: bool
    paths: Sequence[Path]


def is_v1(model: Any) -> bool:
    """Whether a class is a model of pydantic's version 1."""
    return isinstance(model, type) and issubclass(model, BaseModelV1)


def fields_of(schema: Any) -> Mapping[str, ReadAs]:
    """Return the fields of a pydantic model of either version, dataclass or TypedDict, by name."""
    if is_v1(schema):
        hints, by_name = annotations_of(schema), schema.__config__.allow_population_by_field_name
        return {
            name: ReadAs(name, hints.get(name, Any), bool(field.required), [(name,), (field.alias,)] if by_name else [(field.alias,)])
            for name, field in schema.__fields__.items()
        }
    fields: Mapping[str, FieldInfo] = getattr(schema, "__pydantic_fields__", {})
    config = getattr(schema, "model_config", None) or getattr(schema, "__pydantic_config__", {})
    newer = config if "validate_by_alias" in ConfigDict.__annotations__ else {}  # before 2.11 pydantic passes over what it does not know
    by_name = bool(config.get("populate_by_name") or newer.get("validate_by_name"))
    by_alias = newer.get("validate_by_alias") is not False
    if fields:
        return {
            name: ReadAs(name, info.rebuild_annotation(), info.is_required(), _paths(name, info, by_name, by_alias))
            for name, info in fields.items()
        }
    if dataclasses.is_dataclass(schema) or is_typeddict(schema):
        return {name: ReadAs(name, annotation, True, [(name,)]) for name, annotation in annotations_of(schema).items()}
    return {}


def _paths(name: str, info: FieldInfo, by_name: bool, by_alias: bool) -> list[Path]:
    alias = info.validation_alias
    choices = [] if alias is None or not by_alias else alias.choices if isinstance(alias, AliasChoices) else [alias]
    paths: list[Path] = [tuple(one.path) if isinstance(one, AliasPath) else (one,) for one in choices]
    return [(name,), *paths] if by_name or not paths else sorted(paths, key=len)


def aliases_of(info: FieldInfo) -> Iterator[str]:
    """Yield the aliases under which a pydantic model accepts a field."""
    choices = info.validation_alias.choices if isinstance(info.validation_alias, AliasChoices) else [info.validation_alias]
    for alias in (info.alias, *choices):
        first = alias.path[0] if isinstance(alias, AliasPath) else alias
        if isinstance(first, str):
            yield first


def put(data: Any, path: Path, value: Any) -> None:
    """Set a value inside nested objects and lists, which are made where they are missing."""
    for key, following in pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(data, list):
            data.extend([None] * (int(key) + 1 - len(data)))
            data[int(key)] = data[int(key)] or empty
        else:
            data.setdefault(key, empty)
        data = data[key]
    if isinstance(data, list):
        data.extend([None] * (int(path[-1]) + 1 - len(data)))
    data[path[-1]] = value


def found_at(data: Any, path: Path) -> Any:
    """Return the value inside nested objects and lists, or `NOWHERE`."""
    for key in path:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return NOWHERE
    return data


def _absent() -> Any:
    """Return what stands for an argument that is passed only where it is given."""
    return NOWHERE


def schema_of(signature: Signature, name: str, descriptions: Mapping[str, str]) -> type[BaseModel]:
    """Return a class that validates a function's arguments. Its fields have names of their own: a parameter may have any name."""
    fields: dict[str, Any] = {}
    for number, one in enumerate(signature.of_models()):
        annotation = Any if one.annotation is inspect.Parameter.empty else one.annotation
        if isinstance(annotation, str):
            raise NameError(f"the type {annotation!r} of its parameter {one.name!r} is not to be found")
        keys: dict[str, Any] = dict.fromkeys(("alias", "validation_alias", "serialization_alias"), one.name)
        told = next((one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, str)), None)
        if description := descriptions.get(one.name) or told:
            keys["description"] = description
        if isinstance(one.default, FieldInfo):
            field = FieldInfo.merge_field_infos(one.default, **keys)
        elif one.default is NOWHERE:
            field = Field(default_factory=_absent, **keys)
        else:
            field = Field(... if one.required else one.default, **keys)
        fields[f"argument_{number}"] = (annotation, field)
    return create_model(name, __config__=ConfigDict(arbitrary_types_allowed=True), **fields)


def reads_of(schema: Any) -> dict[str, ReadAs]:
    """Return the fields of a class by the names under which they are declared."""
    if schema is None or isinstance(schema, Mapping):
        return {}
    return {str(read.paths[0][0]) if is_own(schema) else name: read for name, read in fields_of(schema).items()}


def is_own(schema: Any) -> bool:
    """Whether a class is one of `schema_of`."""
    return getattr(schema, "__module__", None) == __name__


def subset(name: str, schema: Any, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON schema of some fields of a class, by the names under which they are declared."""
    if is_v1(schema):
        older: dict[str, Any] = {}
        for number, (shown, field) in enumerate(fields.items()):
            known = schema.__fields__[field]
            info = copy(known.field_info)
            info.alias = shown
            older[f"argument_{number}"] = (known.outer_type_ if known.required and not known.allow_none else known.outer_type_ | None, info)
        return dict(create_model_v1(name, **older).schema())
    newer: dict[str, Any] = {}
    for number, (shown, field) in enumerate(fields.items()):
        known = schema.__pydantic_fields__[field]
        factory = known.default_factory or (None if is_finite(known.default) else _absent)  # pydantic would write null into a list
        given: dict[str, Any] = {"default": known.default} if factory is None else {"default_factory": factory}
        info = Field(**given, alias=shown, description=known.description)
        info.metadata = known.metadata
        newer[f"argument_{number}"] = (known.annotation, info)
    config = ConfigDict(arbitrary_types_allowed=True, alias_generator=schema.model_config.get("alias_generator"))
    return dict(create_model(name, __config__=config, **newer).model_json_schema())


def renames_inside(schema: Any) -> bool:
    """Whether a class renames the keys of what stands in it: TypedDicts and dataclasses have the generator of aliases around them."""
    return not is_v1(schema) and schema.model_config.get("alias_generator") is not None


def takes_anything(model: Any) -> bool:
    """Whether a model keeps values of names that it does not know."""
    extra = model.__config__.extra.value if is_v1(model) else model.model_config.get("extra")
    return bool(extra == "allow")


def misnamed(value: Any, made: Any) -> Iterator[str]:
    """Yield the errors for names in nested models that these would drop: field names accepted only by an alias."""
    if isinstance(value, Mapping) and (reads := fields_of(type(made))):
        for name, read in reads.items():
            keys = {str(path[0]) for path in read.paths}
            if name in value and name not in keys:
                yield f"{name!r} is taken under the name {' or '.join(map(repr, sorted(keys)))} only"
            for key in keys & value.keys():
                yield from misnamed(value[key], getattr(made, name, None))
    elif isinstance(value, Mapping) and isinstance(made, Mapping):
        for key in value.keys() & made.keys():
            yield from misnamed(value[key], made[key])
    elif isinstance(value, list) and isinstance(made, list | tuple):
        for one, other in zip(value, made, strict=False):
            yield from misnamed(one, other)


# ---------------------------------------------------------------------------------------------- nested models


def special_inside(annotation: Any, visited: set[Any]) -> Iterator[str]:
    """Yield the names of injected fields nested inside an annotation, and "" for literal members of enumerations."""
    annotation = unaliased(annotation)
    if get_origin(annotation) is Literal:
        yield from ("" for value in get_args(annotation) if isinstance(value, Enum))
    elif not isinstance(annotation, type) or get_args(annotation):
        for part in get_args(annotation):
            yield from special_inside(part, visited)
    elif annotation not in visited:
        visited.add(annotation)
        for name, read in fields_of(annotation).items():
            keys = (name, *(str(path[0]) for path in read.paths))
            yield from keys if source_of(read.annotation)[0] else special_inside(read.annotation, visited)


Leaf = Callable[[Any, Any], Any]
"""A function that returns the value of a type that holds no others, from its value in JSON and the type."""


def unchanged(value: Any, annotation: Any) -> Any:
    """Return a value as it is."""
    return value


def as_member(value: Any, annotation: Any) -> Any:
    """Return the member of an enumeration that a literal asks for, where JSON has its value; other values unchanged."""
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    if any(type(one) is type(value) and one == value for one in choices):
        return value
    return next((one for one in choices if isinstance(one, Enum) and type(one.value) is type(value) and one.value == value), value)


def as_strict(value: Any, annotation: Any) -> Any:
    """Return what a strict schema takes, where JSON has a text or a number: a date, a member of an enumeration."""
    member = as_member(value, annotation)
    if member is not value:
        return member
    try:
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True)).validate_json(dumps(value), strict=True)
    except Exception:  # it is not valid, which the schema itself says better
        return value


def as_annotated(value: Any, annotation: Any, leaf: Leaf) -> Any:
    """Return plain data for an annotation: without values for nested injected fields, and each value in it changed by `leaf`."""
    annotation = unaliased(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return as_annotated(value, parts[0], leaf)
    if origin is typing.Union or origin is types.UnionType:
        if not isinstance(value, dict | list) and any(type(value) is part for part in parts):
            return value
        for part in parts:
            value = as_annotated(value, part, leaf)
        return value
    if isinstance(value, list) and parts and origin is not Literal:
        items = [as_annotated(item, part, leaf) for item, part in zip(value, _item_types(parts, len(value)), strict=False)]
        return origin(items) if leaf is as_strict and origin in (tuple, set, frozenset) else items
    if not isinstance(value, dict):
        return leaf(value, annotation)
    if parts:  # a mapping of keys to values
        return {key: as_annotated(item, parts[-1], leaf) for key, item in value.items()}
    fields = fields_of(annotation) if isinstance(annotation, type) else {}
    known = {key: read.annotation for name, read in fields.items() for key in (name, *(path[0] for path in read.paths))}
    left = {key: item for key, item in value.items() if key not in known or not source_of(known[key])[0]}
    made = {key: as_annotated(item, known[key], leaf) if key in known else item for key, item in left.items()}
    return _instance(made, annotation) if leaf is as_strict and dataclasses.is_dataclass(annotation) else made


def _instance(value: dict[str, Any], kind: Any) -> Any:
    """Return an instance of a dataclass, which a strict schema asks for; the value itself where it is not valid."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return value


def _item_types(parts: tuple[Any, ...], size: int) -> Sequence[Any]:
    """Return the type of each item of a list or tuple."""
    return parts if len(parts) == size and parts[-1] is not ... else [parts[0]] * size
