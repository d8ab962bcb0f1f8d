"""Checks of a custom model's request methods when its class is created.

Each of them would show later only, in the middle of a run and as an error of Python's own. What cannot be seen for certain, such as what a
decorator makes of a method, is not judged.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from textwrap import dedent
from typing import Any, get_type_hints

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult, Generation

from ..errors import ConfigurationError

_SIGNATURE = "(self, messages, stop=None, **kwargs)"
_STREAMS = ("raw_stream", "araw_stream")
_NAMES = (*_STREAMS, "raw_invoke", "araw_invoke")
_PACKAGE = f"{__name__.partition('.')[0]}."
_WHOLE = (BaseMessage, ChatResult, Generation, str)
"""Types that a stream must never yield."""


def check_raw_methods(cls: Any, ours: type) -> None:
    """Raise if `raw_stream`, or a related method, of a new class cannot work.

    Args:
        cls: The class.
        ours: The class that calls these methods.

    Raises:
        ConfigurationError: One of them is asynchronous where it must not be, or the other way round, cannot be called with what it is
            given, or returns a message where it must yield.
    """
    for name in _NAMES:
        owner = next(base for base in cls.__mro__ if name in base.__dict__)
        method = owner.__dict__[name]
        if (owner is cls or not issubclass(owner, ours)) and inspect.isfunction(method) and not hasattr(method, "__wrapped__"):
            problem = _kind_problem(name, method) or _signature_problem(method) or _return_problem(name, method)
            if problem:
                raise ConfigurationError(f"{cls.__name__}.{name} {problem}")


def compared(messages: list[BaseMessage], cls: Any) -> list[BaseMessage]:
    """Return the messages that a request method was called with; as a plain list if they may have changed since they were compared.

    A subclass's own method may change a message in place before it calls the inherited one.

    Args:
        messages: The messages.
        cls: The model's class.
    """
    own = (cls.raw_stream, cls.araw_stream, cls.raw_invoke, cls.araw_invoke)
    for method in own:
        if not method.__module__.startswith(_PACKAGE):
            return [*messages]
    return messages


def _kind_problem(name: str, method: Callable[..., Any]) -> str | None:
    """Return the problem with the kind of function that a method is; None if there is none."""
    yields = inspect.isgeneratorfunction(method)
    is_async = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
    if name == "araw_stream":
        if inspect.iscoroutinefunction(method):
            return "has no `yield`: `yield` each chunk, an asynchronous stream returns nothing"
        return "is not asynchronous: write `async def`, or leave it out, and raw_stream runs in a thread" if yields else None
    if is_async and not name.startswith("a"):
        return f"is asynchronous: write `def`, and call what is `async def` a{name}"
    if name not in _STREAMS and (yields or inspect.isasyncgenfunction(method)):
        return f"yields: it must return one message; what yields is called {'araw_stream' if is_async else 'raw_stream'}"
    return None


def _signature_problem(method: Callable[..., Any]) -> str | None:
    """Return the problem with a method's parameters; None if there is none."""
    signature = inspect.signature(method)
    try:
        signature.bind(None, [], None, tools=[], tool_choice=None)
    except TypeError as error:
        return f"takes {signature}, and is called as {_SIGNATURE}: {error}"
    return None


def _return_problem(name: str, method: Callable[..., Any]) -> str | None:
    """Return the problem with a stream that is not a generator: it may only return an iterator from elsewhere."""
    if name not in _STREAMS or inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        return None
    hint = None
    with suppress(Exception):  # a name of a hint need not exist at all
        hint = get_type_hints(method).get("return")
    body = _body(method)
    returned = [node.value for node in _returns(body) if node.value is not None]
    if (isinstance(hint, type) and issubclass(hint, _WHOLE)) or any(_is_whole(value, body, method) for value in returned):
        return "returns a message: `yield` it, as each chunk of the reply"
    return "neither yields nor returns anything: `yield` each chunk of the reply" if body and not returned else None


def _body(method: Callable[..., Any]) -> list[ast.stmt]:
    """Return the statements of a method; empty if its source is unknown, or if it is a stub or only raises."""
    try:
        (function,) = ast.parse(dedent(inspect.getsource(method))).body
    except (OSError, SyntaxError, TypeError, ValueError):
        return []
    statements: list[ast.stmt] = getattr(function, "body", [])
    does = [
        one
        for one in statements
        if not isinstance(one, ast.Pass) and not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]
    return [] if not does or isinstance(does[-1], ast.Raise) else does


def _nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of a body, without those of nested functions and classes."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _returns(body: list[ast.stmt]) -> list[ast.Return]:
    return [node for node in _nodes(body) if isinstance(node, ast.Return)]


def _is_whole(value: ast.expr, body: list[ast.stmt], method: Callable[..., Any]) -> bool:
    """Whether an expression is certainly a message or a text: a literal, a constructor call, or a name bound to one."""
    if isinstance(value, ast.Name):
        given = [
            node for node in _nodes(body) if isinstance(node, ast.Assign) and value.id in {getattr(one, "id", "") for one in node.targets}
        ]
        stored = [node for node in _nodes(body) if isinstance(node, ast.Name) and node.id == value.id and isinstance(node.ctx, ast.Store)]
        return bool(given) and len(given) == len(stored) and all(_is_whole_value(node.value, method) for node in given)
    return _is_whole_value(value, method)


def _is_whole_value(value: ast.expr, method: Callable[..., Any]) -> bool:
    if isinstance(value, ast.Call):
        called = _resolved(value.func, method)
        return isinstance(called, type) and issubclass(called, _WHOLE)
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))


def _resolved(function: ast.expr, method: Callable[..., Any]) -> Any:
    """Return the object that a name or dotted name in a method refers to; None if it is unknown."""
    if isinstance(function, ast.Attribute):
        return getattr(_resolved(function.value, method), function.attr, None)
    if not isinstance(function, ast.Name):
        return None
    names = inspect.getclosurevars(method)
    return {**names.builtins, **names.globals, **names.nonlocals}.get(function.id)
