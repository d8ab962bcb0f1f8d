"""The way of a call's arguments from the names that a model is told to the parameters of the tool's function (law 12).

For each tool there is one table, made where the tool is given: the name under which an argument is declared, the key under which the
tool's schema reads it, and the parameter that receives it. LangChain's core passes arguments as keywords between its own methods, where
`config`, `run_manager` and others mean something else; here they pass through core as one value, inside core's run of the tool, so that
validation, callbacks and traces stay core's.

Annotations tell what the program supplies: `InjectedToolArg` and its subclasses (`InjectedToolCallId`, LangGraph's `InjectedState` and
`InjectedStore`), the types `ToolContext`, `ToolRuntime`, `RunnableConfig` and those of core's callbacks, also in a union; without an
annotation the names `callbacks`, `run_manager` and `runtime` do. A model is never told of these, and what it writes for one is dropped, in
nested models too. LangGraph is never imported: a tool that uses its types has imported it.
"""

import asyncio
import dis
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from json import dumps, loads
from types import CodeType, MappingProxyType
from typing import Any, Final, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException
from pydantic import ValidationError, create_model
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import create_model as create_model_v1
from pydantic_core import to_jsonable_python

from ..compat import described_parameters, is_core, is_inferred, is_loop_ending, with_methods
from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord, canonical_call
from ..messages.incremental import copy_containers
from ..strict_json import equivalent
from .context import as_asynchronous
from .results import ArgumentPath, InvalidError, as_message, describe, describe_arguments, invalid_arguments, output_content
from .signatures import (
    NOWHERE,
    CheckedSchema,
    InjectionContext,
    Parameter,
    Path,
    Signature,
    as_annotated,
    as_member,
    as_strict,
    fields_of,
    found_at,
    is_own,
    is_v1,
    misnamed,
    put,
    schema_of,
    source_of,
    special_inside,
    subset,
    supply,
    takes_anything,
)

_KEPT_BY_CORE = frozenset({"config", "run_manager", "callbacks", "self"})
_SINGLE: Final = "__arg1"  # core's name for the argument of a tool that has no schema
_INNER = ("bound", "runnable")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class SameArgumentError(ToolException):
    """One argument is given under two names, with different values."""


class Declaration(dict[str, Any]):
    """The JSON schema of a tool's arguments, where LangChain's core would declare others than can be bound, with what validates them.

    Attributes:
        tool: The tool as it was given.
        schema: The class that validates, or the JSON schema that the tool had.
        enforced: Whether the tool's arguments are validated.
    """

    def __init__(self, declared: Mapping[str, Any], tool: BaseTool, schema: Any, enforced: bool) -> None:
        super().__init__(declared)
        self.tool = tool
        self.schema = schema
        self.enforced = enforced


# ---------------------------------------------------------------------------------------------- the table


class ToolArguments:
    """The arguments of one tool: declared, read, validated, bound. Made once per tool; never runs it.

    Args:
        tool: The tool.
        executed: Whether calls of it are executed here, so that each argument must reach its function.

    Attributes:
        tool: The tool as it was given.
        signatures: The signatures of the functions that run it, by the method of `BaseTool` that calls them.
        declared: The names under which a model is told of the arguments.
        hidden: The names, and aliases, under which a model could try to set what the program supplies.
        supplied: The parameters and fields that the program supplies, by name.
        single: Whether the function takes one argument, whatever its name.
        sources: What of the program the tool receives.
        title: The name of the class that validates; "" where none does.
        misread: An argument that core's own way would lose; None if it would lose none.

    Raises:
        ConfigurationError: A model could not call the tool, or an argument would not reach its function.
    """

    def __init__(self, tool: BaseTool, *, executed: bool = True) -> None:
        self.tool: BaseTool = tool.args_schema.tool if isinstance(tool.args_schema, Declaration) else tool
        self._name = tool.name
        self.single = isinstance(tool, Tool) and is_core(type(tool)._run)
        self.signatures = _signatures(tool, self.tool)
        self._schema, self._enforced = _schema(tool, self.signatures)
        is_class = not isinstance(self._schema, Mapping | None)
        self._inferred = is_class and _is_inferred(self._schema, self.signatures)
        self.title: str = getattr(self._schema, "__name__", "")
        self._is_older, self._is_own = is_v1(self._schema), is_own(self._schema)
        reads = fields_of(self._schema) if is_class else {}
        self._reads = {str(read.paths[0][0]) if self._is_own else name: read for name, read in reads.items()}
        functions = [one for signature in self.signatures.values() for one in signature.parameters]
        sources = [(name, read, *source_of(read.annotation)) for name, read in self._reads.items()]
        self._fields = [
            Parameter(name, read.annotation, inspect.Parameter.empty if read.required else ..., False, source, mark)
            for name, read, source, mark in sources
            if source is not None
        ]
        self.supplied = {one.name: one for one in [*functions, *self._fields] if one.source is not None}
        self.sources = frozenset(str(one.source) for one in self.supplied.values())
        # what core makes of `*args` and `**kwargs`
        variadic = {name for one in self.signatures.values() for name in one.variadic} if self._inferred else set()
        self._synthetic = self._reads.keys() & variadic
        names = self._reads if is_class else (_SINGLE,) if self._schema is None else self._schema.get("properties") or ()
        self.declared = tuple(name for name in names if name not in self.supplied and name not in self._synthetic)
        rows = {name: self._reads[name] for name in self.declared if name in self._reads}
        misread = (name for name in self.declared if name in _KEPT_BY_CORE or (name in rows and (name,) not in rows[name].paths))
        self.misread = next(misread, None)
        self._check(executed)
        self._renamed = {name: read.paths[0] for name, read in rows.items() if read.paths[0] != (name,)}
        paths = [(path, name) for name, read in rows.items() for path in read.paths]
        self._aliases = {path: name for path, name in paths if len(path) > 1 or path[0] not in self.declared}
        self._alias_keys = {str(path[0]) for path in self._aliases} - set(self.declared)
        aliases = {str(path[0]) for name in self.supplied if name in self._reads for path in self._reads[name].paths}
        unnamed = () if is_class or self._schema is None else (one.name for one in functions)
        # under what is an argument's own alias too, only that argument is read
        self.hidden = frozenset({*self.supplied, *aliases, *unnamed, "run_manager", "callbacks"} - {*self.declared, *self._alias_keys})
        visited: set[Any] = set()
        inner = [found for read in rows.values() for found in special_inside(read.annotation, visited)]
        self._inner = frozenset(filter(None, inner))
        self._annotations = {name: read.annotation for name, read in rows.items()}
        self._has_members = "" in inner

    @property
    def needs_program(self) -> bool:
        """Whether the tool is given more than its own arguments: something injected, or the configuration."""
        return bool(self._inner or self.sources - {"callbacks", "run_manager"})

    def _check(self, executed: bool) -> None:
        """Raise for an argument that would not reach the function."""
        why = next(filter(None, map(self._obstacle, self.signatures.values())), None) if executed else None
        is_function = isinstance(self.tool, StructuredTool) and (self._inferred or self._is_own)
        if is_function:
            why = next(filter(None, (one.obstacle for one in self.signatures.values())), why)
        if executed and why is None and self.misread is not None and not _goes_through_core(self.tool):
            why = f"its argument {self.misread!r} does not reach a tool with a `run` or a parser of its own: give it another name"
        why = why or self._shared_key()
        if why is not None:
            raise ConfigurationError(f"{self._name!r} cannot be called as a tool: {why}")

    def _shared_key(self) -> str | None:
        """Return what is wrong where one key is read for two arguments; None if nothing is."""
        supplied = {one.name: self._reads[one.name].paths for one in self._fields}
        rows = {name: self._reads[name].paths for name in self.declared if name in self._reads}
        for name, paths in rows.items():
            for other, others in {**supplied, **rows}.items():
                # what is given for it is at its first path, and under its own name where nothing else has that
                places = (paths[0], (name,)) if other in supplied else paths[:1]
                if other != name and _overlap(places, others):
                    whose = ", which the program supplies" if other in supplied else ""
                    return f"what a model writes for {name!r} would be read as {other!r} too{whose}"
            read = next((other for other, others in supplied.items() if _overlap(others[:1], paths)), None)
            if read is not None:
                return f"what the program supplies for {read!r} would be read as {name!r} too"
        return None

    def _obstacle(self, signature: Signature) -> str | None:
        """Return why a function cannot get the declared arguments; None if it can."""
        if self.single:
            return None
        by_position = next((one.name for one in signature.parameters if one.by_position and one.name in self.declared), None)
        if by_position is not None:
            return f"its parameter {by_position!r} cannot be given by name: wrap it in a function whose parameters have names"
        reached = {one.name: one.source is None for one in signature.parameters if not (one.by_position and one.source)}
        lost = next((name for name in self.declared if not reached.get(name, signature.takes_more)), None)
        if lost is not None:
            return f"its argument {lost!r} is declared, and its function has no parameter of this name"
        # what nobody must give is left out of a JSON schema; a class would lose its default
        names = self._schema.get("required", ()) if isinstance(self._schema, Mapping) else self._reads
        program = next((name for name in names if name in self.supplied and self.supplied[name] not in self._fields), None)
        if program is not None and signature.takes_more and not self._inferred:
            return f"its argument {program!r} is declared, and its function takes this name from the program"
        others = [one for one in signature.of_models() if one.name not in self.declared and one.name not in self._reads]
        unknown = next((one.name for one in others if one.required and not isinstance(one.annotation, str)), None)
        return None if unknown is None else f"its parameter {unknown!r} is required, and no argument is declared for it"

    # ------------------------------------------------------------------------------------------ declaring

    def declaration(self) -> Declaration | None:
        """Return the schema to declare; None where LangChain's core declares the same."""
        schema = self._schema
        if schema is None:
            return None
        if isinstance(schema, Mapping):
            if not self.supplied.keys() & schema.get("properties", {}).keys():
                return None
            kept = {name: value for name, value in schema["properties"].items() if name in self.declared}
            required = [name for name in schema.get("required", ()) if name in self.declared]
            return Declaration({**schema, "properties": kept, "required": required}, self.tool, schema, self._enforced)
        # TypedDicts and dataclasses inside have the generator of aliases around them
        renames = not self._is_older and schema.model_config.get("alias_generator") is not None
        if not (self._is_own or renames) and self._declared_by_core() == set(self.declared):
            return None
        made = subset(self._name, schema, {name: self._reads[name].field for name in self.declared})
        return Declaration(made, self.tool, schema, self._enforced)

    def _declared_by_core(self) -> set[str] | None:
        """Return the names that core would declare; None where it cannot."""
        if self._inferred and not self.supplied and all(one.is_plain for one in self.signatures.values()):
            return set(self._reads)  # to ask core would make another class
        try:
            schema: Any = self.tool.tool_call_schema
        except Exception:  # core and pydantic raise whatever they meet in a type
            return None
        return {field.alias for field in schema.__fields__.values()} if self._is_older else set(schema.__pydantic_fields__)

    # ------------------------------------------------------------------------------------------ reading

    def read(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the model's arguments under their declared names, without what the program supplies.

        Raises:
            SameArgumentError: One is given under two names, with different values.
        """
        # copies: a tool that changes its arguments must not change the history
        kept = {name: copy_containers(value) for name, value in args.items() if name not in self.hidden}
        for path, name in self._aliases.items():
            if (value := found_at(kept, path)) is not NOWHERE and not equivalent(kept.setdefault(name, value), value):
                raise SameArgumentError(f"{path[0]!r} and {name!r} are one argument, and have different values: give {name!r} alone")
        for key in self._alias_keys:
            kept.pop(key, None)
        return self._changed(kept) if self._inner else kept

    def _changed(self, args: Mapping[str, Any], leaf: Any = None) -> dict[str, Any]:
        known = self._annotations
        return {name: as_annotated(value, known[name], leaf) if name in known else value for name, value in args.items()}

    def _input(self, args: Mapping[str, Any], supplied: Mapping[str, Any] = _NOTHING) -> dict[str, Any]:
        """Return arguments under the keys at which the schema reads them."""
        data = {**args}
        given = [(path, data.pop(name)) for name, path in self._renamed.items() if name in args]
        for path, value in given:
            put(data, path, value)
        for name, value in supplied.items():
            put(data, self._reads[name].paths[0], value)
        return data

    def values(self, args: Mapping[str, Any], context: InjectionContext) -> Mapping[str, Any]:
        """Return the validated values of a call's arguments by name, with what the program supplies to fields of the schema.

        Args:
            args: The arguments from `read`.
            context: What the program supplies.

        Raises:
            ValidationError: The arguments are not valid, in either version of pydantic.
        """
        values: Mapping[str, Any] = args
        if self._enforced and not isinstance(self._schema, Mapping):
            supplied = {one.name: value for one in self._fields if (value := supply(one, context)) is not NOWHERE}
            values = self._of(self._validate(args, supplied))
        elif isinstance(self._schema, CheckedSchema) and (why := self._unfit(args)):
            raise ToolException(why)
        if self.single and len(values) != 1:
            raise ToolException(f"the tool {self._name!r} takes one argument, not {len(values)}")
        return values

    def bind(
        self, method: str, values: Mapping[str, Any], context: InjectionContext, config: RunnableConfig, run_manager: Any
    ) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]:
        """Return the function to call, with its arguments by position and by keyword.

        Args:
            method: The method of `BaseTool` in whose place it is called.
            values: The validated values from `values`.
            context: What the program supplies.
            config: The configuration that core gives to the tool.
            run_manager: The callbacks of the tool's run, from core.
        """
        signature = self.signatures[method]
        if not (self.single or self.supplied or signature.dispatches):
            return signature.function, (), values

        def given(parameter: Parameter) -> Any:
            if parameter.source == "config":  # a runnable's own method finds that of the tool's run in its context
                return NOWHERE if isinstance(getattr(signature.function, "__self__", None), Runnable) and self.single else config
            if parameter.source == "run_manager":
                return NOWHERE if run_manager is None else run_manager
            if parameter.source == "callbacks":
                return NOWHERE if run_manager is None else run_manager.get_child()
            return supply(parameter, context)

        args, kwargs = signature.bind({} if self.single else values, given)
        return signature.function, [*values.values()] if self.single else args, kwargs

    def _validate(self, args: Mapping[str, Any], supplied: Mapping[str, Any] = _NOTHING, *, alone: bool = False) -> Any:
        """Validate arguments as the schema does, else as the JSON that they are: a strict schema takes a date as text there.

        Args:
            args: The arguments from `read`.
            supplied: What the program supplies to fields of the schema.
            alone: Whether the rest of what the program supplies may be missing.
        """
        schema = self._relaxed if alone else self._schema
        if self._is_older:
            return schema.parse_obj(self._input(args, supplied))
        try:
            given = self._changed(args, as_member) if self._has_members else args
            return schema.model_validate(self._input(given, supplied) if self._renamed or supplied else given)
        except ValidationError as first:
            error = first
        is_whole = all(one.name in supplied or not one.required for one in self._fields)
        try:
            made = (self._relaxed if is_whole else schema).model_validate_json(dumps(self._input(args)))
            made.__dict__.update({self._reads[name].field: value for name, value in supplied.items()})
            return made
        except ValidationError as second:
            error = second if second.error_count() < error.error_count() else error
        except (TypeError, ValueError):  # what a program gave is no JSON
            raise error from None
        if not self._has_members:
            raise error
        return schema.model_validate(self._input(self._changed(args, as_strict), supplied))

    def _of(self, made: Any) -> dict[str, Any]:
        """Return the values of a validated model by name."""
        values = dict(made.__dict__)  # in version 1 with those of names that the schema does not know
        if self._is_own:
            values = {name: values[read.field] for name, read in self._reads.items() if values[read.field] is not NOWHERE}
        if self._synthetic:
            given = made.__fields_set__ if self._is_older else made.__pydantic_fields_set__
            values = {name: value for name, value in values.items() if name in given or name not in self._synthetic}
        more = None if self._is_older else made.__pydantic_extra__
        return {**values, **more} if more else values

    @functools.cached_property
    def _relaxed(self) -> Any:
        """The schema in which what the program supplies may be missing, because it is not filled in yet."""
        reads = [self._reads[name] for name in self.supplied if name in self._reads]
        absent = {read.field: (Any, None) for read in reads if read.required}
        if not absent:
            return self._schema
        made: Any = create_model_v1 if self._is_older else create_model
        if not self._is_older:  # pydantic takes an attribute of the base for the default of a field that has its name (`model_json_schema`)
            known = self._schema.__pydantic_fields__
            absent = {name: (one.annotation, copy(one)) for name, one in known.items() if hasattr(self._schema, name)} | absent
        return made(self._schema.__name__, __base__=self._schema, **absent)

    # ------------------------------------------------------------------------------------------ judging

    def validated(self, call: ToolCallRecord) -> ToolCallRecord:
        """Return the call with the arguments that the tool will receive, as plain data; not executable if they are invalid.

        What the program supplies is left out. A tool whose schema is a dict, or that has none, gets what is written.

        Raises:
            ConfigurationError: The arguments are valid, and cannot be written as plain data.
        """
        try:
            given = self.read(call.args or {})
        except SameArgumentError as error:
            return replace(call, args=None, why=describe(error))
        if self._schema is None or isinstance(self._schema, Mapping):
            why = self._unfit(given)
            return replace(call, args=None, why=why) if why else canonical_call(replace(call, args=given))
        try:
            made = self._validate(given, alone=True)
        except Exception as error:
            return replace(call, args=None, why=self._explained(error)) if self._enforced else canonical_call(replace(call, args=given))
        plain = self._plain(made, call)
        return canonical_call(replace(call, args=plain if self._enforced else {**plain, **given}))

    def _unfit(self, args: Mapping[str, Any], *, for_model: bool = True) -> str | None:
        """Describe what is wrong with arguments that something else than core checks; None if nothing is."""
        why = self._schema.problem(args) if isinstance(self._schema, CheckedSchema) else None
        return why and invalid_arguments(self._name, [why], for_model=for_model)

    def problem(self, args: Mapping[str, Any]) -> str | None:
        """Describe the problem with arguments that a human gave in place of the model's; None if they are valid.

        Unlike a model's, each of them must be one that the tool gets: no other name, and no field's name in a nested model that takes
        the field under an alias only.
        """
        schema = self._schema
        if schema is None:
            return None
        is_mapping = isinstance(schema, Mapping)
        is_open = schema.get("additionalProperties") if is_mapping else takes_anything(schema)
        unknown = [name for name in args if name in self.hidden or not (is_open or name in {*self.declared, *self._alias_keys})]
        if unknown:
            return f"{', '.join(map(repr, unknown))} is no argument of the tool"
        if is_mapping:
            missing = [name for name in schema.get("required", ()) if name not in args and name not in self.hidden]
            return f"{', '.join(map(repr, missing))} is missing" if missing else self._unfit(args, for_model=False)
        try:
            given = self.read(args)
            made = self._validate(given, alone=True)
            inside = (
                one for name, read in self._reads.items() if name in given for one in misnamed(given[name], made.__dict__.get(read.field))
            )
            return next(inside, None)
        except Exception as error:
            return self._explained(error, for_model=False)

    def _plain(self, made: Any, call: ToolCallRecord) -> dict[str, Any]:
        try:
            values = {name: value for name, value in self._of(made).items() if name not in self.supplied}
            if not isinstance(made, BaseModelV1):
                return dict(to_jsonable_python(values, by_alias=False, fallback=str))
            plain: dict[str, Any] = loads(dumps(values, default=cast("Any", made).__json_encoder__))
            return plain
        except Exception as error:
            raise ConfigurationError(
                f"the arguments of call {call.id!r} cannot be written as plain data, which rules are asked about: {type(error).__name__}"
            ) from None

    def _explained(self, error: Exception, *, for_model: bool = True) -> str:
        if not isinstance(error, InvalidError):
            return describe(error)
        handler = self.tool.handle_validation_error
        if not handler:
            return self.described(error, self._name, for_model=for_model)
        return "Tool input validation error" if handler is True else handler if isinstance(handler, str) else handler(error)

    def described(self, error: InvalidError, name: str, *, for_model: bool = True) -> str:
        """Describe invalid arguments for the model, or for a human, under their declared names."""
        return describe_arguments(error, name, self._shown, for_model=for_model)

    def _shown(self, place: ArgumentPath) -> ArgumentPath | None:
        """Return a place in the arguments as a model knows it; None for one that is none of its business."""
        if place and (place[0] in self.hidden or not self._inner.isdisjoint(place[1:])):
            return None
        for name, read in self._reads.items():
            for path in (*read.paths, (read.field,)):
                if place[: len(path)] == path and name in self.declared:
                    return (name, *place[len(path) :])
        return place


ArgumentsOf = Callable[[str], ToolArguments | None]
"""A function that returns the arguments of a tool, by its own name; None if there is no such tool."""


def _overlap(places: Sequence[Path], paths: Sequence[Path]) -> bool:
    """Whether something that is put at one of these places is read at one of these paths."""
    return any(path[: len(place)] == place[: len(path)] for place in places for path in paths)


def declared(tool: BaseTool, *, executed: bool = True) -> BaseTool:
    """Return a tool as models are told of it: itself, or a copy with a `Declaration`.

    Args:
        tool: The tool.
        executed: Whether calls of it are executed here.

    Raises:
        ConfigurationError: A model could not call it, or an argument would not reach its function.
    """
    if isinstance(tool.args_schema, Declaration):
        return tool
    declaration = ToolArguments(tool, executed=executed).declaration()
    return tool if declaration is None else tool.model_copy(update={"args_schema": declaration})


def _signatures(tool: BaseTool, own: BaseTool) -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for method, attribute in (("_run", "func"), ("_arun", "coroutine")):
        defined = getattr(type(tool), method)
        function = None if defined is BaseTool._arun or _only_raises(getattr(defined, "__code__", None)) else getattr(own, method)
        is_method = not (is_core(defined) and isinstance(tool, StructuredTool | Tool))
        if not is_method:
            function = getattr(tool, attribute)
        if function is not None:
            found[method] = Signature.of(function, is_method=is_method)
    return found or {"_run": Signature.of(own._run, is_method=True)}


@functools.lru_cache(1_000)
def _only_raises(code: CodeType | None) -> bool:
    """Whether a function's code is a placeholder that only raises NotImplementedError."""
    if code is None or "NotImplementedError" not in code.co_names:
        return False
    return {instruction.opname for instruction in dis.get_instructions(code)}.isdisjoint(("RETURN_VALUE", "RETURN_CONST"))


def _is_inferred(schema: Any, signatures: Mapping[str, Signature]) -> bool:
    """Whether core has made a class of arguments from these functions, and not from another one."""
    names = {name for one in signatures.values() for name in (*one.variadic, *(parameter.name for parameter in one.parameters))}
    # pydantic's names for what it adds itself begin with "v__"
    return is_inferred(schema) and {name for name in fields_of(schema) if not name.startswith("v__")} <= names


def _schema(tool: BaseTool, signatures: Mapping[str, Signature]) -> tuple[Any, bool]:
    """Return what describes a tool's arguments, and whether they are validated by it; None for a tool of one argument without a name."""
    given: Any = tool.args_schema
    if isinstance(given, Declaration):
        return given.schema, given.enforced
    if isinstance(given, Mapping) or (given is not None and not _is_inferred(given, signatures)):
        return given, True
    if given is None and isinstance(tool, Tool):
        return None, False
    enforced = given is not None  # else core gives the tool the arguments as they are written
    signature = next((one for one in signatures.values() if one.of_models()), next(iter(signatures.values())))
    names = [one.name for one in signature.of_models()]
    try:
        inferred = tool.get_input_schema() if given is None else given
        if set(names) <= fields_of(inferred).keys():
            return inferred, enforced
    except Exception:  # core and pydantic raise whatever they meet in a signature
        pass
    known = {name: field.description for name, field in getattr(given, "__pydantic_fields__", {}).items() if field.description}
    try:
        return schema_of(signature, tool.name, {**described_parameters(signature.function, names)[1], **known}), enforced
    except Exception as error:
        raise ConfigurationError(f"{tool.name!r} cannot be made a tool: {error}") from error


# ---------------------------------------------------------------------------------------------- tools inside other runnables


def tool_inside(value: Any) -> BaseTool | None:
    """Return the tool that a runnable wraps (`tool.with_retry()`, ...); a tool itself for a tool; None for other values."""
    while isinstance(value, Runnable) and not isinstance(value, BaseTool):
        value = next((inner for name in _INNER if isinstance(inner := value.__dict__.get(name), Runnable)), None)
    return value if isinstance(value, BaseTool) else None


class WrappedTool(BaseTool):
    """A tool that is declared like the one inside and invoked through its wrapper."""

    around: Any
    inside: Any

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Invoke the tool through its wrapper."""
        return self.around.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Like `invoke`, asynchronously."""
        return await self.around.ainvoke(input, config, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self.inside._run(*args, **kwargs)


def as_wrapped_tool(value: Any, inside: BaseTool) -> WrappedTool:
    """Return a runnable around a tool as a tool.

    Raises:
        ConfigurationError: A model could not call one of the tools inside.
    """
    _rewrapped(value, declared)
    same_fields = {name: getattr(inside, name) for name in ("return_direct", "metadata", "tags", "response_format", "extras")}
    schema: Any = inside.args_schema if inside.args_schema is not None else inside.get_input_schema()
    return WrappedTool(name=inside.name, description=inside.description, args_schema=schema, around=value, inside=inside, **same_fields)


def _rewrapped(value: Any, change: Callable[[BaseTool], BaseTool]) -> Any:
    """Return a copy of a wrapper, and of all inside it, with its tools changed."""
    if isinstance(value, BaseTool):
        return change(value)
    inner = {name: _rewrapped(one, change) for name in _INNER if isinstance(one := value.__dict__.get(name), Runnable)}
    others = value.__dict__.get("fallbacks") if inner else None
    if others:
        inner["fallbacks"] = [_rewrapped(one, change) for one in others]
    return value.model_copy(update=inner) if inner else value


# ---------------------------------------------------------------------------------------------- running through core

current_call: ContextVar[Any] = ContextVar("autotools_current_run")
"""The execution of the call in whose context a tool runs."""


def _goes_through_core(tool: BaseTool) -> bool:
    """Whether core's own code runs the tool and parses its input."""
    kind: Any = type(tool)
    parsers = [kind._parse_input, kind._to_args_and_kwargs]
    return all(map(is_core, (kind.run, kind.arun, *parsers)))


class PreparedTool:
    """A tool with the properties needed to run it, computed once.

    Attributes:
        tool: The tool, as it is declared.
        arguments: Its arguments.
        asynchronous: Whether it has an asynchronous implementation of its own.
        only_asynchronous: Whether it has no other.
        observed: Whether a call can tell that the tool's own code began to run.
        reports: Whether it may report progress.
        yields: Whether it reports what it yields.
    """

    def __init__(self, tool: BaseTool, *, yields: bool = False) -> None:
        self.tool = tool
        self.yields = yields
        inside = tool.inside if isinstance(tool, WrappedTool) else tool
        self.arguments = ToolArguments(inside)
        kind: Any = type(inside)
        self.asynchronous = "_arun" in self.arguments.signatures or not is_core(kind.ainvoke)
        raises = _only_raises(getattr(kind._run, "__code__", None))
        self.only_asynchronous = self.asynchronous and (raises or "_run" not in self.arguments.signatures)
        is_core_run, is_core_invoke = _goes_through_core(inside), is_core(kind.invoke) and is_core(kind.ainvoke)
        self.observed = tool is inside and is_core_run and is_core_invoke
        self._methods: dict[str, Any] = {}  # through which core runs the tool, so that its arguments meet none of core's own
        if is_core_run and (is_core_invoke or self.arguments.misread is not None):
            values = self.arguments.values
            self._methods["_to_args_and_kwargs"] = lambda tool_input, tool_call_id: ((values(tool_input, current_call.get().context),), {})
            self._methods |= {"_filter_injected_args": dict, "_run": _run_of(inside, self.arguments)}
            if "_arun" in self.arguments.signatures:
                self._methods["_arun"] = _arun_of(inside, self.arguments)
        self.reports = yields or "context" in self.arguments.sources

    @functools.cached_property
    def yielding(self) -> "PreparedTool":
        """Return the same tool with its yielded values as progress reports."""
        return PreparedTool(as_asynchronous(self.tool), yields=True)

    @functools.cached_property
    def _others(self) -> dict[int, "PreparedTool"]:
        """The tools inside a wrapper, by identity."""
        found: dict[int, PreparedTool] = {}
        _rewrapped(self.tool.around, lambda one: found.setdefault(id(one), PreparedTool(declared(one))).tool)  # type: ignore[attr-defined]
        return found

    def runnable(self, args: dict[str, Any], context: InjectionContext) -> tuple[Any, dict[str, Any]]:
        """Return what to invoke for a call, with its arguments from `read`: the tool, whose arguments pass through core as one value."""
        if isinstance(self.tool, WrappedTool):
            others = self._others
            return _rewrapped(self.tool.around, lambda one: others[id(one)]._stand_in()), args
        if self._methods:
            return with_methods(self.tool, self._methods), args
        known = {one.name: supply(one, context) for one in self.arguments.supplied.values() if one.source != "config"}
        return self.arguments.tool, {**args, **{name: value for name, value in known.items() if value is not NOWHERE}}

    def _stand_in(self) -> BaseTool:
        if self._methods:
            return with_methods(self.tool, self._methods)
        return self.tool if isinstance(self.tool, WrappedTool) else self.arguments.tool


def _run_of(tool: BaseTool, arguments: ToolArguments) -> Any:
    def run(values: Any, /, *, config: RunnableConfig, run_manager: Any = None) -> Any:
        current = current_call.get()
        current.executed = True
        if current.stopped_by is not None:  # given up in the moment in which it would have begun
            raise current.stopped_by
        function, args, kwargs = arguments.bind("_run", values, current.context, config, run_manager)
        try:
            if current.reporting is not None:
                return _presented(tool, current.reporting.run(function, *args, **kwargs))
            return _presented(tool, function(*args, **kwargs))
        except Exception as error:
            if _is_seen(error, tool):
                raise
            raise NoException(error) from error

    run.__signature__ = inspect.signature(run)  # type: ignore[attr-defined]  # core inspects it on every call
    return run


def _arun_of(tool: BaseTool, arguments: ToolArguments) -> Any:
    async def arun(values: Any, /, *, config: RunnableConfig, run_manager: Any = None) -> Any:
        current = current_call.get()
        current.executed = True
        function, args, kwargs = arguments.bind("_arun", values, current.context, config, run_manager)
        try:
            if current.reporting is None:
                return _presented(tool, await function(*args, **kwargs))
            return _presented(tool, await current.reporting.arun(function, *args, **kwargs))
        except asyncio.CancelledError as error:
            if is_loop_ending():
                raise
            # LangChain ends the tool's run in the callbacks for an Exception only.
            raise current.stopped_by or Cancelled("cancelled") from error
        except (KeyboardInterrupt, SystemExit, GeneratorExit) as error:
            raise NoException(error) from error
        except Exception as error:
            if _is_seen(error, tool):
                raise
            raise NoException(error) from error

    arun.__signature__ = inspect.signature(arun)  # type: ignore[attr-defined]
    return arun


def _presented(tool: BaseTool, output: Any) -> Any:
    if tool.response_format != "content_and_artifact":
        return as_message(output_content(output))
    if isinstance(output, tuple) and len(output) == 2:
        content, artifact = as_message(output_content(output[0])), output[1]
        return content.model_copy(update={"artifact": artifact}) if isinstance(content, ToolMessage) else content, artifact
    return output  # not what the tool promised: LangChain says so


class Cancelled(Exception):
    """Stands for `asyncio.CancelledError` in places that only handle Exception."""


class NoException(Exception):
    """Stands for exceptions that would end the event loop instead of passing through LangChain's task, and for those it would not see."""


def _is_seen(error: Exception, tool: BaseTool) -> bool:
    """Whether LangChain notices a tool's exception: it asks whether one is true, and an exception may be an empty collection."""
    try:
        return bool(error) or (isinstance(error, ToolException) and bool(tool.handle_tool_error))
    except Exception:  # whatever its own code raises
        return False


class PreparedTools:
    """The prepared tools of an executor, by name.

    Args:
        tools: The tools by name. They may change.
    """

    def __init__(self, tools: Mapping[str, BaseTool]) -> None:
        self._tools = tools
        self._known: dict[str, PreparedTool] = {}

    def __getitem__(self, name: str) -> PreparedTool:
        tool, known = self._tools[name], self._known.get(name)
        if known is None or known.tool is not tool:
            known = self._known[name] = PreparedTool(tool)
        return known

    def arguments_of(self, name: str) -> ToolArguments | None:
        """Return the arguments of a tool; None if no tool has exactly this name."""
        return self[name].arguments if name in self._tools else None
