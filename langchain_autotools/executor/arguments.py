"""The arguments of a call as its tool receives them: validated by the tool's schema, with field names and defaults."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from json import loads
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import AliasChoices, AliasPath, ValidationError, create_model
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1
from pydantic.v1 import create_model as create_model_v1
from pydantic_core import to_jsonable_python

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord, canonical_call
from .injection import InjectedArguments
from .results import describe, describe_arguments

_VARIADIC = frozenset({"args", "kwargs"})  # fields that LangChain makes of `*args` and `**kwargs`, and gives no tool


class ToolArguments:
    """Validates the arguments of one tool's calls. Created once per tool; never runs the tool.

    Args:
        tool: The tool.
        injected: Its injected arguments, which no call has.
    """

    def __init__(self, tool: BaseTool, injected: InjectedArguments) -> None:
        self._name = tool.name
        self._injected = injected
        self._schema: Any = tool.args_schema if tool.args_schema is not None else tool.tool_call_schema
        self._is_enforced = tool.args_schema is not None  # else LangChain gives the tool the arguments as they are written

    def validated(self, call: ToolCallRecord) -> ToolCallRecord:
        """Return the call with the arguments that the tool will receive, as plain data; not executable if they are invalid.

        Injected arguments are left out. A tool whose schema is a dict, or that has none, gets what is written.

        Raises:
            ConfigurationError: The arguments are valid, and cannot be written as plain data.
        """
        given = self._injected.left_out(call.args or {})
        try:
            made = None if isinstance(self._schema, Mapping) else self._model(given)
        except Exception as error:
            if not self._is_enforced:
                return canonical_call(replace(call, args=given))
            return replace(call, args=None, why=self._explained(error, call.name))
        if made is None:
            return canonical_call(replace(call, args=given))
        plain = self._plain(made, call)
        return canonical_call(replace(call, args=plain if self._is_enforced else {**plain, **given}))

    def problem(self, args: Mapping[str, Any]) -> str | None:
        """Describe the problem with arguments that a human gave in place of the model's; None if they are valid.

        Unlike a model's, each of them must be one that the tool gets: no other name, and no field's name where the schema takes the
        field under an alias only.
        """
        schema = self._schema
        if isinstance(schema, Mapping):
            known = args if schema.get("additionalProperties") else schema.get("properties", ())
            return self._unknown(args, known) or _missing(args, schema.get("required", ()))
        fields = _input_names(schema)
        known = args if _takes_anything(schema) else {*fields, *(name for names in fields.values() for name in names)}
        try:
            misnamed = self._unknown(args, known) or next(_misnamed(args, schema), None)
            return misnamed or next(_misnamed_inside(args, self._model(args)), None)
        except Exception as error:
            return self._explained(error, self._name)

    def _unknown(self, args: Mapping[str, Any], known: Collection[str]) -> str | None:
        unknown = [name for name in args if name not in known or name in self._injected.hidden]
        return f"{', '.join(map(repr, unknown))} is no argument of the tool" if unknown else None

    @cached_property
    def _model(self) -> Callable[[Mapping[str, Any]], Any]:
        """A function that creates the schema's model of arguments. Injected fields may be missing, because they are not filled in yet."""
        schema, absent = self._schema, self._injected.hidden & _fields_of(self._schema).keys()
        fields: Any = dict.fromkeys(absent, (Any, None))
        model: Any = schema
        if fields:
            model = (create_model_v1 if _is_v1(schema) else create_model)(schema.__name__, __base__=schema, **fields)
        validate: Callable[[Any], Any] = model.parse_obj if _is_v1(schema) else model.model_validate
        return validate

    def _plain(self, made: Any, call: ToolCallRecord) -> dict[str, Any]:
        try:
            if isinstance(made, BaseModelV1):
                plain, given = loads(made.json()), made.__fields_set__
            else:
                plain, given = to_jsonable_python(made, by_alias=False, fallback=str), made.model_fields_set
            kept = (_fields_of(type(made)).keys() - self._injected.hidden - _VARIADIC) | given
            return {name: value for name, value in plain.items() if name in kept}
        except Exception as error:
            raise ConfigurationError(
                f"the arguments of call {call.id!r} cannot be written as plain data, which rules are asked about: {type(error).__name__}"
            ) from None

    def _explained(self, error: Exception, name: str) -> str:
        if isinstance(error, ValidationError | ValidationErrorV1):
            return describe_arguments(error, name, self._injected.conceals)
        return describe(error)


ArgumentsOf = Callable[[str], ToolArguments | None]
"""A function that returns the argument validator of a tool, by its own name; None if there is no such tool."""


def _missing(args: Mapping[str, Any], required: Collection[str]) -> str | None:
    missing = [name for name in required if name not in args]
    return f"{', '.join(map(repr, missing))} is missing" if missing else None


# ---------------------------------------------------------------------------------------------- names of fields


def _fields_of(model: Any) -> Mapping[str, Any]:
    """Return the fields of a pydantic model or dataclass, of either version."""
    fields: Mapping[str, Any] = getattr(model, "__fields__" if _is_v1(model) else "__pydantic_fields__", {})
    return fields


def _is_v1(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, BaseModelV1)


def _takes_anything(model: Any) -> bool:
    extra = model.__config__.extra.value if _is_v1(model) else model.model_config.get("extra")
    return bool(extra == "allow")


def _input_names(model: Any) -> dict[str, frozenset[str]]:
    """Return the names under which a model accepts each of its fields."""
    if _is_v1(model):
        by_name = model.__config__.allow_population_by_field_name
        return {name: frozenset({field.alias, name} if by_name else {field.alias}) for name, field in _fields_of(model).items()}
    config = getattr(model, "model_config", None) or getattr(model, "__pydantic_config__", {})
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    by_alias = config.get("validate_by_alias") is not False
    names: dict[str, frozenset[str]] = {}
    for name, info in _fields_of(model).items():
        aliases = frozenset(_aliases(info.validation_alias)) if by_alias else frozenset()
        names[name] = aliases | {name} if by_name or not aliases else aliases
    return names


def _aliases(alias: Any) -> Iterator[str]:
    """Yield the keys at which pydantic looks for a field with an alias, or several."""
    for one in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        key = one.path[0] if isinstance(one, AliasPath) else one
        if isinstance(key, str):
            yield key


def _misnamed(args: Mapping[str, Any], model: Any) -> Iterator[str]:
    """Yield the errors for argument names that a model would drop: field names accepted only by an alias."""
    for name, names in _input_names(model).items():
        if name in args and name not in names:
            yield f"{name!r} is taken under the name {' or '.join(map(repr, sorted(names)))} only"


def _misnamed_inside(value: Any, made: Any) -> Iterator[str]:
    """Yield the errors for argument names in nested models."""
    if isinstance(value, Mapping) and _fields_of(type(made)):
        yield from _misnamed(value, type(made))
        for name, names in _input_names(type(made)).items():
            for key in names & value.keys():
                yield from _misnamed_inside(value[key], getattr(made, name))
    elif isinstance(value, Mapping) and isinstance(made, Mapping):
        for key in value.keys() & made.keys():
            yield from _misnamed_inside(value[key], made[key])
    elif isinstance(value, list) and isinstance(made, list | tuple):
        for one, other in zip(value, made, strict=False):
            yield from _misnamed_inside(one, other)
