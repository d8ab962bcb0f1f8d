"""Random signatures of tools, each as the source text of a program that makes the tool: what law 12 is tried on.

Names are read from LangChain, pydantic and the package with `dir` and `inspect`. What a tool must receive is written down beside each type,
and the reasons for which a tool may be refused in `Signature.refusable`: nothing here asks the package.
"""

from __future__ import annotations

import datetime
import importlib
import inspect
import keyword
import pkgutil
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Optional

from hypothesis import strategies as st
from langchain_core.callbacks import (
    AsyncCallbackManagerForToolRun,
    BaseCallbackManager,
    CallbackManagerForToolRun,
    Callbacks,
)
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langchain_core.tools import base as core_tools
from langgraph.prebuilt import InjectedState, ToolRuntime
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import Field as FieldV1
from pydantic.v1 import create_model as create_model_v1
from pydantic.v1 import decorator as decorator_v1
from typing_extensions import TypedDict

import langchain_autotools.executor
from langchain_autotools import ToolContext, ToolExecutor
from langchain_autotools.testing import ScriptedChatModel

TOOL = "probe_7"
"""The name of every tool: an error about it names it."""
USER = "alice"
QUESTION = "Go."


# ---------------------------------------------------------------------------------------------- types of parameters


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Shade(Enum):
    """A shade."""

    DARK = "dark"
    LIGHT = "light"


@dataclass
class Point:
    """A point."""

    x: int
    y: int = 0


class Place(TypedDict):
    """A place."""

    city: str
    zone: int


class Node(BaseModel):
    """A tree."""

    name: str
    children: list[Node] = []


class Money(BaseModel):
    """An amount, known by another name."""

    amount: int = Field(0, alias="sum")


class Strict(BaseModel):
    """A model that takes nothing for something else."""

    model_config = ConfigDict(strict=True)
    when: datetime.date
    colour: Colour


@dataclass(frozen=True)
class Kind:
    """A type of parameters.

    Attributes:
        source: The annotation.
        write: What a model writes of it, of a number.
        read: What the function must get of that.
        default: The source of a default.
        older: Whether pydantic's version 1 has it.
        schema: The type as a JSON schema; None where it has none of its own.
    """

    source: str
    write: Callable[[int], Any]
    read: Callable[[int], Any]
    default: str
    older: bool = True
    schema: Mapping[str, Any] | None = None


def _same(source: str, write: Callable[[int], Any], default: str, schema: Mapping[str, Any], older: bool = True) -> Kind:
    return Kind(source, write, write, default, older, schema)


def _day(number: int) -> str:
    return f"2026-01-{number % 28 + 1:02}"


_NUMBERS: Mapping[str, Any] = {"type": "array", "items": {"type": "integer"}}
_EITHER: Mapping[str, Any] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_NULLABLE: Mapping[str, Any] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_DATE = datetime.date.fromisoformat

KINDS: Mapping[str, Kind] = {
    "text": _same("str", lambda n: f"text {n}", "'usual'", {"type": "string"}),
    "whole number": _same("int", lambda n: n, "-1", {"type": "integer"}),
    "number": _same("float", lambda n: n + 0.5, "-0.5", {"type": "number"}),
    "list": _same("list[int]", lambda n: [n, 0], "[]", _NUMBERS),
    "mapping": _same("dict[str, int]", lambda n: {"k": n}, "{}", {"type": "object", "additionalProperties": {"type": "integer"}}),
    "plain mapping": _same("dict", lambda n: {"replicas": [n]}, "{}", {"type": "object"}),
    "nullable": _same("str | None", lambda n: f"some {n}", "None", _NULLABLE, older=False),
    "Optional": _same("Optional[int]", lambda n: n, "None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    "union": _same("int | str", lambda n: f"either {n}", "0", _EITHER, older=False),
    "anything": _same("Any", lambda n: {"x": [n]}, "None", {}),
    "words": _same("Literal['a', 'b']", lambda n: "ab"[n % 2], "'a'", {"enum": ["a", "b"]}),
    "enum": Kind("Colour", lambda n: ("red", "blue")[n % 2], lambda n: (Colour.RED, Colour.BLUE)[n % 2], "Colour.RED"),
    "member": Kind("Literal[Shade.DARK]", lambda n: "dark", lambda n: Shade.DARK, "Shade.DARK", older=False),
    "date": Kind("datetime.date", _day, lambda n: _DATE(_day(n)), "datetime.date(2020, 2, 2)"),
    "pair": Kind("tuple[int, str]", lambda n: [n, "x"], lambda n: (n, "x"), "(0, '')"),
    "set": Kind("set[str]", lambda n: [f"s{n}"], lambda n: {f"s{n}"}, "{'s'}"),
    "dataclass": Kind("Point", lambda n: {"x": n}, lambda n: Point(n), "Point(0)", older=False),
    "typed mapping": Kind("Place", *[lambda n: {"city": "Rome", "zone": n}] * 2, "{'city': '', 'zone': 0}", older=False),  # type: ignore[arg-type]
    "model": Kind(
        "Node",
        lambda n: {"name": "a", "children": [{"name": f"b{n}"}]},
        lambda n: Node(name="a", children=[Node(name=f"b{n}")]),
        "Node(name='')",
        older=False,
    ),
    "aliased model": Kind("Money", lambda n: {"sum": n}, lambda n: Money(sum=n), "Money(sum=0)", older=False),
    "strict model": Kind(
        "Strict",
        lambda n: {"when": _day(n), "colour": "red"},
        lambda n: Strict(when=_DATE(_day(n)), colour=Colour.RED),
        "Strict(when=datetime.date(2020, 2, 2), colour=Colour.RED)",
        older=False,
    ),
    "models": Kind("list[Node]", lambda n: [{"name": f"b{n}"}], lambda n: [Node(name=f"b{n}")], "[]", older=False),
    "optional model": Kind("Optional[Node]", lambda n: {"name": f"b{n}"}, lambda n: Node(name=f"b{n}"), "None", older=False),
    "untyped": _same("", lambda n: {"x": [n]}, "None", {}),
}


# ---------------------------------------------------------------------------------------------- what the program gives


@dataclass(frozen=True)
class Given:
    """A kind of parameters that the program fills.

    Attributes:
        source: The annotation.
        default: The source of the default; empty for none.
        holds: Whether a value is the program's, in the call with an id.
        name: The one name under which it is the program's; empty for any.
        schema: Whether a schema of one's own can have it.
    """

    source: str
    default: str
    holds: Callable[[Any, str], bool]
    name: str = ""
    schema: bool = False


def _is_configuration(value: Any, call_id: str) -> bool:
    return bool(value and value["configurable"]["user"] == USER)


def _is_state(value: Any, call_id: str) -> bool:
    return bool(value and value["messages"][0].text == QUESTION)


def _is_manager(value: Any, call_id: str) -> bool:
    return value is None or isinstance(value, BaseCallbackManager | CallbackManagerForToolRun | AsyncCallbackManagerForToolRun)


def _is_runtime(value: Any, call_id: str) -> bool:
    return bool(value is not None and value.tool_call_id == call_id)


def _is_context(value: Any, call_id: str) -> bool:
    return bool(value is not None and value.call.id == call_id)


def _is_id(value: Any, call_id: str) -> bool:
    return bool(value == call_id)


GIVEN: Sequence[Given] = (
    Given("RunnableConfig", "", _is_configuration),
    Given("Optional[RunnableConfig]", "None", _is_configuration),
    Given("RunnableConfig | None", "None", _is_configuration),
    Given("Annotated[str, InjectedToolArg]", "'program'", lambda value, _: value == "program", schema=True),
    Given("Optional[Annotated[str, InjectedToolArg]]", "'program'", lambda value, _: value == "program", schema=True),
    Given("Annotated[str, InjectedToolCallId]", "", _is_id, schema=True),
    Given("Optional[Annotated[str, InjectedToolCallId]]", "None", _is_id, schema=True),
    Given("ToolRuntime", "", _is_runtime),
    Given("Optional[ToolRuntime]", "None", _is_runtime),
    Given("Annotated[dict, InjectedState]", "", _is_state, schema=True),
    Given("Optional[Annotated[dict, InjectedState]]", "None", _is_state, schema=True),
    Given("Annotated[list, InjectedState('messages')]", "", lambda value, _: bool(value and value[0].text == QUESTION), schema=True),
    Given("ToolContext", "", _is_context),
    Given("ToolContext | None", "None", _is_context),
    Given("Optional[CallbackManagerForToolRun]", "None", _is_manager),
    Given("Optional[AsyncCallbackManagerForToolRun]", "None", _is_manager),
    Given("Callbacks", "None", _is_manager),
    Given("", "None", _is_manager, "callbacks"),
    Given("", "None", _is_manager, "run_manager"),
    Given("", "None", lambda value, call_id: value is None or value.tool_call_id == call_id, "runtime"),
)
UNTYPED = tuple(one.name for one in GIVEN if one.name)


# ---------------------------------------------------------------------------------------------- names


def _parameters_in(holder: Any) -> Iterator[str]:
    """Yield the names of the parameters of everything that an object or module has."""
    for name in dir(holder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield from inspect.signature(getattr(holder, name)).parameters
            except Exception:
                continue


@cache
def hostile_names() -> Sequence[str]:
    """The names that LangChain, pydantic and the package use themselves where a tool is made, called or kept."""
    room = langchain_autotools.executor
    modules = [importlib.import_module(f"{room.__name__}.{one.name}") for one in pkgutil.iter_modules(room.__path__)]
    classes: list[Any] = [BaseTool, StructuredTool, BaseModel, BaseModelV1, ToolExecutor, ToolContext]
    found = {name for one in [*classes, core_tools, *modules] for name in _parameters_in(one)}
    found |= {name for one in classes for name in dir(one)} | {*RunnableConfig.__annotations__, *ScriptedChatModel.model_fields}
    return sorted(name for name in found if name.isidentifier() and not keyword.iskeyword(name))


@cache
def nearest_names() -> Sequence[str]:
    """Those of them that are nearest to the tool: what core's own `run` and `_run` take, and the keys of a configuration."""
    methods = (BaseTool.run, BaseTool.invoke, BaseTool._parse_input, StructuredTool._run, BaseTool._run, StructuredTool.from_function)
    found = {name for one in methods for name in inspect.signature(one).parameters}
    return sorted({*found, *RunnableConfig.__annotations__, *core_tools.FILTERED_ARGS, *UNTYPED})


@cache
def can_be_field(name: str, *, older: bool = False) -> bool:
    """Whether pydantic makes a field of this name, and can read it. (A class with a `__subclasshook__` like it breaks `issubclass`.)"""
    if name.startswith("__"):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made: Any = create_model_v1("M", **{name: (str, ...)}) if older else create_model("M", **{name: (str, ...)})  # type: ignore[call-overload]
            create_model("M", __config__=ConfigDict(extra="forbid"), **{name: (str, ...)})  # type: ignore[call-overload]
            return name in (made.__fields__ if older else made.model_fields) and (older or _is_read(name))
        except Exception:
            return False


def _is_read(name: str) -> bool:
    """Whether pydantic reads a field of this name as any other: before 2.11 not one that has the name of a property or a hook of models."""
    made: Any = create_model("M", **{name: (int, Field(7, validation_alias="other"))})  # type: ignore[call-overload]
    return [getattr(made.model_validate(given), name) for given in ({}, {"other": 8})] == [7, 8]


_KEPT = {"args", "kwargs", *(value for key, value in vars(decorator_v1).items() if key.startswith(("V_", "ALT_V_")))}
"""The names of parameters that core and pydantic keep when they read a function: nothing can be made of them there."""


def _is_plain(name: str) -> bool:
    return not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name and name.isidentifier()


_WORDS = st.from_regex(r"[a-zäöüß][a-z0-9_äéöüß都]{0,8}", fullmatch=True).filter(_is_plain)
_CAMEL = st.from_regex(r"[a-z]{2,4}[A-Z][a-z]{1,3}", fullmatch=True)
_SNAKE = st.from_regex(r"[a-z]{2,4}_[a-z]{2,4}", fullmatch=True).filter(_is_plain)


def names() -> st.SearchStrategy[str]:
    """Names of parameters."""
    return st.one_of(st.sampled_from(nearest_names()), st.sampled_from(hostile_names()), _WORDS, _CAMEL, _SNAKE)


# ---------------------------------------------------------------------------------------------- signatures

FUNCTIONS = ("function", "decorated", "structured")
SCHEMAS = ("schema", "decorated schema", "older schema", "runnable", "class with schema")
FORMS = (*FUNCTIONS, *SCHEMAS, "json schema", "adapter", "class")
WRAPPERS = ("{}.with_retry()", "{}.with_config(tags=['t'])", "{}.with_fallbacks([{}])", "{}.with_config(tags=['t']).with_retry()")
_CAMELS = ("alias_generator=to_camel", "alias_generator=to_camel, populate_by_name=True")
CONFIGS = (
    "",
    "",
    "strict=True",
    "extra='forbid'",
    "extra='allow'",
    "populate_by_name=True",
    *_CAMELS,
    *(["validate_by_alias=False, validate_by_name=True"] if "validate_by_alias" in ConfigDict.__annotations__ else []),
)


@dataclass(frozen=True)
class Parameter:
    """A parameter that the model fills.

    Attributes:
        name: Its name.
        kind: Its type.
        has_default: Whether it has a default.
        field: Further arguments of its field, as source.
        path: The keys under which a model can write it beside its own name; empty for none.
    """

    name: str
    kind: Kind
    has_default: bool = False
    field: str = ""
    path: tuple[str, ...] = ()

    @property
    def default(self) -> str:
        """The source of the default, or of none."""
        return self.kind.default if self.has_default else "..."


@dataclass(frozen=True)
class Signature:
    """A tool, as the source of a program that makes it."""

    form: str
    parameters: tuple[Parameter, ...]
    given: tuple[tuple[str, Given], ...] = ()
    is_async: bool = False
    postponed: bool = False
    config: str = ""
    wrapper: str = "{}"
    takes_anything: bool = False
    positional_only: bool = False
    variadic: bool = False
    in_schema: bool = False

    def __repr__(self) -> str:
        return f"\n{self.source()}\n"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What hypothesis shows."""
        printer.text(repr(self))

    @property
    def declared(self) -> list[str]:
        """The names that the model is told of."""
        return [one.name for one in self.parameters]

    def path(self, parameter: Parameter) -> tuple[str, ...]:
        """The keys under which the schema reads a parameter beside its own name; empty for none."""
        if self.form not in SCHEMAS or "validate_by_alias=False" in self.config:
            return ()
        alone = "alias" not in parameter.field and "to_camel" in self.config
        path = (to_camel(parameter.name),) if alone else parameter.path
        return () if path == (parameter.name,) else path

    def declared_name(self, parameter: Parameter, found: Sequence[str]) -> str:
        """The name of a parameter among those that are declared: its own; where pydantic 1 has made the schema, its alias may be."""
        alias = (*self.path(parameter), parameter.name)[0]
        return alias if self.form == "older schema" and parameter.name not in found else parameter.name

    # ------------------------------------------------------------------------------------------ its source

    def _list(self, *, method: bool = False) -> str:
        """The parameters of the function, as source."""
        if self.form == "adapter":
            return "runtime: Any = None, **others_written: dict[str, Any]"
        own = (
            []
            if self.takes_anything
            else [(one.name, one.kind.source, one.kind.default if one.has_default else "") for one in self.parameters]
        )
        every = [*own, *((name, one.source, one.default) for name, one in self.given)]
        texts = [f"{name}{': ' * bool(kind)}{kind}{' = ' * bool(default)}{default}" for name, kind, default in every]
        required = [text for text, (_, _, default) in zip(texts, every, strict=True) if not default]
        others = [text for text in texts if text not in required]
        slash = ["/"] if self.positional_only and required else []
        star = ["*rest" if self.variadic else "*"] if others else ["*rest"] if self.variadic else []
        anything = ["**others_written"] if self.takes_anything else []
        return ", ".join(["self"] * method + required + slash + star + others + anything)

    def _schema(self) -> str:
        if self.form == "json schema" or self.form == "adapter":
            properties = {one.name: dict(one.kind.schema or {}) for one in self.parameters}
            required = [one.name for one in self.parameters if not one.has_default]
            return f"SCHEMA = { ({'type': 'object', 'properties': properties, 'required': required})!r}\n"
        maker, make = ("create_model_v1", "FieldV1") if self.form == "older schema" else ("create_model", "Field")
        config = f"__config__={'old_config' if maker.endswith('v1') else 'ConfigDict'}({self.config}), " if self.config else ""
        fields = [f"{one.name!r}: ({one.kind.source}, {make}({one.default}{', ' * bool(one.field)}{one.field}))" for one in self.parameters]
        if self.in_schema:
            fields += [f"{name!r}: ({one.source}, {make}({one.default or '...'}))" for name, one in self.given if one.schema]
        return f"SCHEMA = {maker}('Arguments', {config}**{{{', '.join(fields)}}})\n"

    def _function(self) -> str:
        head = "async def" if self.is_async or self.form == "adapter" else "def"
        value = "(note(locals()), None)" if self.form == "adapter" else "note(locals())"
        return f"{head} {TOOL}({self._list()}):\n    'Do it.'\n    return {value}\n"

    def _class(self, schema: str) -> str:
        lines = [
            "class Made(BaseTool):",
            f"    name: str = {TOOL!r}",
            "    description: str = 'Do it.'",
            f"    args_schema: Any = {schema}",
        ]
        if self.is_async:
            lines += [f"    def _run(self, {self._list()}):".replace(", )", ")"), "        raise NotImplementedError"]
        lines += [
            f"    {'async def _arun' if self.is_async else 'def _run'}({self._list(method=True)}):",
            "        return note(locals())",
            "",
        ]
        return "\n".join(lines)

    def source(self) -> str:
        """The program."""
        named, function = f"name={TOOL!r}, description='Do it.'", f"{'coroutine' if self.is_async else 'func'}={TOOL}"
        made = {
            "function": lambda: self._function() + f"given = {TOOL}",
            "decorated": lambda: self._function() + f"given = tool({TOOL})",
            "structured": lambda: self._function() + f"given = StructuredTool.from_function({function})",
            "decorated schema": lambda: self._schema() + self._function() + f"given = tool(args_schema=SCHEMA)({TOOL})",
            "adapter": lambda: (
                self._schema()
                + self._function()
                + f"given = StructuredTool({named}, args_schema=SCHEMA, coroutine={TOOL}, response_format='content_and_artifact')"
            ),
            "runnable": lambda: self._schema() + f"given = RunnableLambda(lambda given: note(dict(given))).as_tool(SCHEMA, {named})",
            "class": lambda: self._class("None") + "given = Made()",
            "class with schema": lambda: self._schema() + self._class("SCHEMA") + "given = Made()",
        }
        other = lambda: self._schema() + self._function() + f"given = StructuredTool({named}, args_schema=SCHEMA, {function})"  # noqa: E731
        text = made.get(self.form, other)()
        future = "from __future__ import annotations\n" if self.postponed else ""
        wrapped = f"\ngiven = {self.wrapper.replace('{}', 'given')}" if self.wrapper != "{}" else ""
        return future + text + wrapped

    def make(self, note: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
        """Run the program: `given` is what a program gives a model as its tool."""
        space = {**SPACE, "note": note}
        exec(compile(self.source(), "<signature>", "exec", dont_inherit=True), space)
        return space

    # ------------------------------------------------------------------------------------------ what may be refused

    def refusable(self) -> list[str]:
        """The reasons for which the package may refuse the tool."""
        reasons = ["its arguments have no names"] * (self.positional_only or self.variadic)
        by_core = self.form in (*FUNCTIONS, "class")
        for name in [*self.declared, *(name for name, _ in self.given)]:
            if by_core and (name in _KEPT or not can_be_field(name)):
                reasons.append(f"pydantic has no field {name}")
        if self.form == "class" or (by_core and self.form != "function"):  # core has left them out of its schema
            reasons += [f"core fills {name}" for name in self.declared if name in core_tools.FILTERED_ARGS]
        if self.form == "runnable":
            reasons += [f"core's function has {name}" for name in self.declared if name in ("callbacks", "kwargs", "args")]
        if self.form == "adapter" and "runtime" in self.declared:
            reasons.append("its function fills runtime")
        if not self.takes_anything and {"args", "kwargs"} & {*self.declared}:
            reasons.append("core keeps args and kwargs")
        keys = [key for one in self.parameters for key in self.path(one)[:1]]
        if {*keys} & {*self.declared, *(name for name, _ in self.given)} or len({*keys}) < len(keys):
            reasons.append("an alias is another argument's name")
        return reasons


def old_config(**values: Any) -> type:
    """A configuration of pydantic's version 1."""
    return type("Config", (), values)


SPACE: Mapping[str, Any] = {
    **{
        one.__name__: one
        for one in (Colour, Shade, Point, Place, Node, Money, Strict, BaseTool, StructuredTool, RunnableLambda, ToolContext)
    },
    **{
        one.__name__: one for one in (InjectedToolArg, InjectedToolCallId, InjectedState, ToolRuntime, RunnableConfig, to_camel, old_config)
    },
    **{one.__name__: one for one in (CallbackManagerForToolRun, AsyncCallbackManagerForToolRun, AliasChoices, AliasPath, ConfigDict)},
    **{"Any": Any, "Annotated": Annotated, "Optional": Optional, "Literal": Literal, "Callbacks": Callbacks, "datetime": datetime},
    **{"Field": Field, "FieldV1": FieldV1, "create_model": create_model, "create_model_v1": create_model_v1, "tool": tool},
    "__name__": __name__,
}
"""What the sources of tools know."""


# ---------------------------------------------------------------------------------------------- drawing them


@st.composite
def _field(draw: st.DrawFn, form: str) -> tuple[str, tuple[str, ...]]:
    """Further arguments of a field, and the keys under which a model can write it beside its name."""
    alias = draw(st.one_of(_CAMEL, _WORDS, names()))
    exclude = draw(st.sampled_from(["", "", "", "exclude=True"]))
    choices: list[tuple[str, tuple[str, ...]]] = [("", ()), ("", ()), (f"alias={alias!r}", (alias,))]
    if form != "older schema":
        choices += [
            (f"validation_alias={alias!r}", (alias,)),
            (f"serialization_alias={alias!r}", ()),
            (f"validation_alias=AliasChoices({alias!r}, {alias + '_2'!r})", (alias,)),
            (f"validation_alias=AliasPath({alias!r}, 'inner')", (alias, "inner")),
            (f"validation_alias=AliasChoices(AliasPath({alias!r}, 'inner'), {alias + '_2'!r})", (alias, "inner")),
        ]
    text, path = draw(st.sampled_from(choices))
    return ", ".join(one for one in (text, exclude) if one), path


@st.composite
def _parameter(draw: st.DrawFn, name: str, form: str) -> Parameter:
    """A parameter that fits a form."""
    fits = {
        "older schema": lambda one: one.older and one.source,
        "json schema": lambda one: one.schema is not None and one.source,
        "adapter": lambda one: one.schema is not None and one.source,
    }.get(form, lambda one: one.source or (form in FUNCTIONS and name not in UNTYPED))
    # those of any type are the program's
    programs = name in ("runtime", *(["run_manager"] if form in ("class", "class with schema") else []))
    kinds = [one for one in KINDS.values() if fits(one) and not (programs and one.source in ("", "Any"))]
    kind = draw(st.sampled_from(kinds))
    text, path = draw(_field(form)) if form in SCHEMAS else ("", ())
    return Parameter(name, kind, draw(st.booleans()), text, path)


def _can_stand(name: str, form: str) -> bool:
    """Whether a program can have a parameter of this name in this form."""
    if name in ("note", "locals", "others_written"):  # what the function itself uses
        return False
    if form in ("class", "class with schema") and (name == "self" or name.startswith("__")):
        return False
    if form == "older schema" and name.startswith("__"):  # pydantic 1 lets a field take the place of what Python asks every class for
        return False
    if form in SCHEMAS:
        return can_be_field(name, older=form == "older schema")
    return True


@st.composite
def _given(draw: st.DrawFn, taken: Iterable[str], form: str) -> tuple[tuple[str, Given], ...]:
    """Parameters that the program fills."""
    found: dict[str, Given] = {}
    for one in draw(st.lists(st.sampled_from(GIVEN), max_size=2, unique=True)):
        name = one.name or draw(st.one_of(names(), _SNAKE).filter(lambda name: _can_stand(name, form) and can_be_field(name)))
        if name not in {*found, *taken, *_KEPT}:
            found[name] = one
    return tuple(found.items())


@st.composite
def signatures(draw: st.DrawFn, ascii_only: bool = False) -> Signature:
    """A signature."""
    form = draw(st.sampled_from(FORMS))
    fits = lambda name: _can_stand(name, form) and (name.isascii() or not ascii_only)  # noqa: E731
    found = draw(st.lists(names().filter(fits), min_size=1, max_size=4, unique=True))
    parameters = tuple(draw(_parameter(name, form)) for name in found)
    wraps = form not in ("function",) and draw(st.integers(0, 4)) == 0
    alone = form in ("runnable", "adapter")
    rare = form in FUNCTIONS and draw(st.integers(0, 11)) == 0
    return Signature(
        form,
        parameters,
        () if alone else draw(_given(found, form)),
        form != "runnable" and draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from(CONFIGS)) if form in SCHEMAS and form != "older schema" else "",
        draw(st.sampled_from(WRAPPERS)) if wraps else "{}",
        form in ("schema", "older schema", "json schema") and draw(st.booleans()),
        rare and draw(st.booleans()),
        rare and draw(st.booleans()),
        form in ("schema", "class with schema") and draw(st.booleans()),
    )
