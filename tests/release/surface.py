"""The public surface as lines: every public name, its parameters, fields and attributes, and the options of the command line.

A line stands for itself, so that two surfaces are compared line by line. What a class inherits from LangChain, pydantic or an SDK is left
out, and so are annotations: both depend on the releases that are installed.
"""

import argparse
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

from .lists import REPOSITORY

PACKAGE = "langchain_autotools"
MODULES = ("", "event_types", "messages", "testing", "history", "encoders", "durable", "showing", "file_handlers", "providers.results")
"""The modules that users import from: those with an `__all__` of which every name is public."""
PYDANTIC = {"model_config", "model_fields", "model_computed_fields", "model_post_init"}
"""Names that pydantic gives to classes of ours, which of them depends on its release."""
STAND_INS = {"ModelRefusalError"}
"""Classes that stand in for LangChain's own where its release has none: what they have is its to say."""

_REFERENCE = re.compile(rf"^::: {PACKAGE}\.(\S+)$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^\s+self\.([a-z]\w*)(?::[^=\n]+)? = ", re.MULTILINE)


def described_names() -> list[str]:
    """The names that the pages of the reference describe, each as often as it is there."""
    pages = sorted((REPOSITORY / "docs" / "reference").glob("*.md"))
    return [name for page in pages for name in _REFERENCE.findall(page.read_text(encoding="utf-8"))]


def public_names(missing: set[str]) -> dict[str, Any]:
    """Every public name with what it stands for; modules whose extra is not installed are added to `missing`."""
    names: dict[str, Any] = {}
    for module in MODULES:
        try:
            exported = import_module(f"{PACKAGE}.{module}".rstrip("."))
        except ImportError:
            missing.add(module)
            continue
        names |= {f"{module}.{name}".lstrip("."): getattr(exported, name) for name in exported.__all__ if name != "__version__"}
    for path in described_names():
        module, _, name = path.rpartition(".")
        if module not in missing and path not in names:
            names[path] = getattr(import_module(f"{PACKAGE}.{module}".rstrip(".")), name)
    return names


def surface() -> tuple[list[str], set[str]]:
    """The lines of the public surface, and the modules that could not be read because their extra is not installed."""
    missing: set[str] = set()
    names = public_names(missing)
    firsts: dict[int, str] = {}
    lines: list[str] = []
    for path, value in names.items():
        first = firsts.setdefault(id(value), path)
        lines += [f"{path}: {first}"] if first != path else described(path, value, names)
    return sorted([*lines, *command_line()]), missing


def described(path: str, value: Any, names: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one public name."""
    if inspect.isclass(value):
        bases = [name for name, other in names.items() if inspect.isclass(other) and other in value.__mro__[1:]]
        yield f"{path}: class"
        yield from (f"{path}: class, {base}" for base in bases)
        inherited = {line for base in bases for line in class_lines(names[base])}
        own = () if path in STAND_INS else class_lines(value)
        yield from (f"{path}{line}" for line in own if line not in inherited)
    elif get_origin(value) is Literal:
        yield from (f"{path}: {choice!r}" for choice in get_args(value))
    elif inspect.isfunction(value):
        yield f"{path}: function{awaited(value)}"
        yield from (f"{path}{line}" for line in parameters(value))
    else:
        yield f"{path}: value"


def class_lines(cls: type) -> Iterator[str]:
    """The constructor, fields, methods and attributes that a class has of this package, without the name of the class."""
    fields: Mapping[str, Any] = getattr(cls, "model_fields", {})
    ours = [base for base in cls.__mro__ if base.__module__.startswith(PACKAGE)]
    names = {name for base in ours for name in (*vars(base), *inspect.get_annotations(base)) if not name.startswith("_")}
    for name in sorted(names - PYDANTIC):
        if name in fields:
            yield field_line(name, fields[name])
        else:
            yield from member_lines(name, inspect.getattr_static(cls, name, None))
    makers = [base for base in ours if inspect.isfunction(vars(base).get("__init__"))]
    if not fields and makers:
        yield from parameters(vars(makers[0])["__init__"])
        found = {name for base in makers for name in _ATTRIBUTE.findall(source_of(vars(base)["__init__"]))}
        yield from (f".{name}" for name in sorted(found - names))


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function; nothing of one that was made by a decorator."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def field_line(name: str, field: Any) -> str:
    """A field of a pydantic model: the name of its argument too, and its default."""
    alias = f" as {field.alias}" if field.alias and field.alias != name else ""
    default = "" if field.is_required() else "=..." if field.default_factory else f"={shown(field.default)}"
    return f".{name}{alias}{default}"


def member_lines(name: str, member: Any) -> Iterator[str]:
    """A method with its parameters, or an attribute."""
    function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
    if not inspect.isfunction(function):
        yield f".{name}"
    elif function.__module__.startswith(PACKAGE):
        yield f".{name}(){awaited(function)}"
        yield from (f".{name}{line}" for line in parameters(function))


def awaited(function: Callable[..., Any]) -> str:
    """Whether a function is to be awaited or iterated asynchronously, as a word behind its name."""
    return " async" if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) else ""


def parameters(function: Callable[..., Any]) -> Iterator[str]:
    """One line for each parameter: its position where it may be given by that, its name, its default."""
    listed = [parameter for parameter in inspect.signature(function).parameters.values() if parameter.name not in ("self", "cls")]
    for position, parameter in enumerate(listed, 1):
        marks = {
            parameter.POSITIONAL_ONLY: f"{position}, /",
            parameter.POSITIONAL_OR_KEYWORD: f"{position}: ",
            parameter.VAR_POSITIONAL: "*",
            parameter.KEYWORD_ONLY: "*, ",
            parameter.VAR_KEYWORD: "**",
        }
        default = "" if parameter.default is parameter.empty else f"={shown(parameter.default)}"
        yield f"({marks[parameter.kind]}{parameter.name}{default})"


def shown(default: Any) -> str:
    """A default value, the same text in every process and on every Python."""
    simple = default is None or isinstance(default, (bool, int, float, str)) or default in ((), [], {}, frozenset())
    return repr(default) if simple else getattr(default, "__qualname__", f"<{type(default).__name__}>")


def command_line() -> Iterator[str]:
    """The commands of the command line, each with its options."""
    from langchain_autotools.cli.program import PROGRAM, make_parser

    waiting: list[tuple[str, argparse.ArgumentParser]] = [(PROGRAM, make_parser())]
    while waiting:
        command, parser = waiting.pop()
        yield f"{command}: command"
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [(f"{command} {name}", inner) for name, inner in action.choices.items()]
            else:
                number = "" if action.nargs is None else f" {action.nargs}"
                yield f"{command} {'|'.join(action.option_strings) or action.dest}{number}"
