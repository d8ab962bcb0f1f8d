"""Tools of a model on the command line: those that the user names, else built-in ones."""

import ast
import importlib
import importlib.util
import inspect
import operator
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from langchain_core.tools import BaseTool, tool

from ..errors import ConfigurationError
from ..executor.tools import tools_by_name

_CONVENTIONAL = "tools"  # the name looked for where none is given
# Invented, and fixed: the same question gets the same answer.
_TEMPERATURES = {
    "amsterdam": 14, "athens": 26, "beijing": 17, "berlin": 13, "buenos aires": 19, "cairo": 30, "delhi": 33, "dublin": 11,
    "helsinki": 7, "istanbul": 20, "lagos": 31, "lisbon": 22, "london": 12, "los angeles": 24, "madrid": 23, "mexico city": 21,
    "moscow": 5, "mumbai": 32, "nairobi": 25, "new york": 16, "oslo": 6, "paris": 18, "prague": 10, "reykjavik": 3,
    "rio de janeiro": 27, "rome": 24, "san francisco": 15, "singapore": 31, "stockholm": 8, "sydney": 20, "tokyo": 19,
    "toronto": 9, "vienna": 14, "warsaw": 9, "zurich": 12,
}  # fmt: skip
_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_LONGEST = 200


# ---------------------------------------------------------------------------------------------- tools that the user names


@dataclass(frozen=True)
class LoadedTools:
    """Tools that a user named.

    Attributes:
        tools: The tools, in order.
        sources: Where they were looked for.
        passed_over: What was found there and is not offered: its name, and why.
    """

    tools: Sequence[Any]
    sources: Sequence[str]
    passed_over: Sequence[tuple[str, str]]

    @property
    def names(self) -> list[str]:
        """The names under which a model calls the tools."""
        return list(tools_by_name(list(self.tools)))


def load_tools(sources: Sequence[str]) -> LoadedTools:
    """Return the tools of all sources, in order.

    Args:
        sources: Each `module:attribute`, `file.py` or `file.py:attribute`. The attribute is a tool, a function, a list of
            them or a mapping of names to them; without it the file's `tools`, else every LangChain tool in it.

    Raises:
        ConfigurationError: A source cannot be loaded or holds no tools.
    """
    loaded = [_load_source(source) for source in sources]
    return LoadedTools([tool for tools, _ in loaded for tool in tools], sources, [other for _, others in loaded for other in others])


def _load_source(source: str) -> tuple[list[Any], list[tuple[str, str]]]:
    place, attribute = _split(source)
    try:
        if place.endswith(".py"):
            module = _module_of_file(Path(place))
        else:
            if "" not in sys.path and str(Path.cwd()) not in sys.path:
                sys.path.insert(0, str(Path.cwd()))  # as `python -m` does; an installed command does not
            module = importlib.import_module(place)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"--tools {source}: {place} cannot be loaded: {_describe_failure(error, place)}") from error
    tools = _tools_of(module, attribute, source)
    if not tools:
        raise ConfigurationError(f"--tools {source}: there are no tools in it{_advice(module, attribute, place)}")
    return tools, [] if attribute else _passed_over(module, tools, place)


def _passed_over(module: ModuleType, tools: Sequence[Any], place: str) -> list[tuple[str, str]]:
    """Return the parts of a file that are not offered: tools missing from its `tools`, or functions if it has no such list."""
    if hasattr(module, _CONVENTIONAL):
        reason = f"not in {_CONVENTIONAL}"
        others = {name: value for name, value in vars(module).items() if isinstance(value, BaseTool)}
        return [(name, reason) for name, value in others.items() if not any(value is tool for tool in tools)]
    return [(name, f"a plain function: name it with -T {place}:{name}, or decorate it with @tool") for name in _functions(module)]


def _functions(module: ModuleType) -> list[str]:
    """Return the names of a module's own public functions."""
    own = {name: value for name, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__}
    return [name for name in own if not name.startswith("_")]


def _describe_failure(error: Exception, place: str) -> str:
    """Describe an error, with the line of the user's file."""
    text = f"{type(error).__name__}: {(error.msg if isinstance(error, SyntaxError) else error)}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == Path(place).absolute()]
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename) == Path(place).absolute():
        lines.append(error.lineno)
    return f"line {lines[-1]}: {text}" if lines else text


def _advice(module: ModuleType, attribute: str | None, place: str) -> str:
    """Describe how to name the plain functions of a file, since only its author can say which ones a model may call."""
    names = _functions(module) if attribute is None else []
    if not names:
        return ""
    return f"; name its functions ({place}:{names[0]}), list them (tools = [{', '.join(names)}]), or decorate them with @tool"


def _split(source: str) -> tuple[str, str | None]:
    place, colon, attribute = source.rpartition(":")
    if not colon or attribute.endswith(".py"):  # the colon of a drive letter
        place, attribute = source, ""
    if not attribute and not place.endswith(".py"):
        raise ConfigurationError(f"--tools {source}: expected module:attribute, file.py or file.py:attribute")
    return place, attribute or None


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigurationError(f"--tools: there is no file {path}")
    path = path.absolute()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"--tools: {path} is not a Python file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # it may import its neighbours, as a program does; at the end, so that none of them hides a library
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # type hints of its functions are looked up there
    spec.loader.exec_module(module)
    return module


def _tools_of(module: ModuleType, attribute: str | None, source: str) -> list[Any]:
    if attribute is None:
        found = getattr(module, _CONVENTIONAL, None)
        if found is None:
            return [value for value in vars(module).values() if isinstance(value, BaseTool)]
    elif hasattr(module, attribute):
        found = getattr(module, attribute)
    else:
        raise ConfigurationError(f"--tools {source}: there is no {attribute} in it")
    return _as_list(found, source)


def _as_list(found: Any, source: str) -> list[Any]:
    if isinstance(found, Mapping):
        return list(tools_by_name(found).values())
    if isinstance(found, BaseTool) or callable(found):
        return [found]
    if isinstance(found, Sequence) and not isinstance(found, str):
        return list(found)
    raise ConfigurationError(f"--tools {source}: a {type(found).__name__} is neither a tool nor a list or mapping of tools")


# ---------------------------------------------------------------------------------------------- built-in tools


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    name = city.split(",")[0].strip().casefold()
    if name in _TEMPERATURES:
        return f"{_TEMPERATURES[name]} °C"
    # A city that is not in the table has a temperature too, always the same.
    return f"{10 + sum(map(ord, name)) % 15} °C"


@tool
def calculate(expression: str) -> str:
    """Result of an arithmetic expression, such as 3 * (4 + 5)."""
    if len(expression) > _LONGEST:
        raise ValueError(f"an expression has at most {_LONGEST} characters")
    text = expression.replace("×", "*").replace("÷", "/").replace("−", "-")
    value = _evaluate(ast.parse(text.strip(), mode="eval").body)
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def _evaluate(node: ast.AST) -> float:
    """Return the value of an expression of numbers, `+ - * / // %` and parentheses: nothing can be executed or grow large."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    raise ValueError("only numbers, + - * / // % and parentheses are understood")


@tool
def get_current_time() -> str:
    """Current local date and time."""
    return datetime.now().astimezone().strftime("%A, %Y-%m-%d %H:%M %Z")


DEMO_TOOLS: tuple[BaseTool, ...] = (get_temperature, calculate, get_current_time)
"""The tools of a conversation if the user names none."""

SMALL_MODEL_TOOLS: tuple[BaseTool, ...] = (get_temperature,)
"""The tools for the default local model, which confuses two or more (numbers in docs/local_model.md)."""
