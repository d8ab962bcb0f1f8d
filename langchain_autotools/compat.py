"""The package's only uses of undocumented interfaces: of LangChain, LangGraph, pydantic, Python.

Each entry has a test of its own in `tests/unit/test_compat.py`, which fails by name where a new release has changed it. Here are also
the hooks of LangChain's core that a class must override in its own body, and what the vendors' SDKs do beyond their documentation. What
would be lost if core copied the chunks that it hands on is in `tests/unit/test_compat_copies.py`.
"""

import pickle
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from inspect import getdoc
from json import JSONDecodeError
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models._utils import _normalize_messages
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg
from langchain_core.tools.base import _DirectlyInjectedToolArg
from langchain_core.utils.function_calling import _parse_google_docstring
from langchain_core.utils.utils import LC_ID_PREFIX
from langchain_core.utils.uuid import uuid7
from pydantic import BaseModel

_B = TypeVar("_B", bound=BaseModel)
_T = TypeVar("_T", bound=BaseTool)

# ---------------------------------------------------------------------------------------------- pydantic

_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_new = object.__new__
_set_values, _set_known, _set_extra, _set_private = (BaseModel.__dict__[name].__set__ for name in _SLOTS)


def unvalidated(cls: type[_B], values: dict[str, Any], known: set[str], extra: dict[str, Any] | None) -> _B:
    """Return a pydantic model with these values, created without its validating constructor and `__setattr__`.

    Args:
        cls: The model's class.
        values: Every field's value.
        known: The names of the fields that count as set.
        extra: The values of no field, where the class allows them.
    """
    made: _B = _new(cls)
    _set_values(made, values)
    _set_known(made, known)
    _set_extra(made, extra)
    _set_private(made, None)
    return made


_empty_values = AIMessageChunk(content="").__dict__.copy
_known_of_chunk = {"content", "additional_kwargs", "response_metadata", "id"}.copy


def new_chunk(
    content: str | list[Any], extra: dict[str, Any], message_id: str | None, metadata: dict[str, Any] | None = None
) -> AIMessageChunk:
    """Return a chunk without calls, without validation.

    Args:
        content: Its content.
        extra: Its `additional_kwargs`.
        message_id: The message's id, if it is known.
        metadata: Its `response_metadata`; empty where not given.

    Returns:
        A chunk that has these very containers: who gets it may change them.
    """
    values = _empty_values()
    values["content"] = content
    values["additional_kwargs"] = extra
    values["response_metadata"] = {} if metadata is None else metadata
    values["id"] = message_id
    values["tool_calls"], values["invalid_tool_calls"], values["tool_call_chunks"] = [], [], []
    made = _new(AIMessageChunk)  # `unvalidated`, whose call every chunk of every stream would pay for
    _set_values(made, values)
    _set_known(made, _known_of_chunk())
    _set_extra(made, {})
    _set_private(made, None)
    return made


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # what makes the classes of models


# ---------------------------------------------------------------------------------------------- pickle


def current_pickler() -> type[pickle.Pickler]:
    """Return the class of the active pickler: `pickle`'s own, or one that serializes functions by value, such as cloudpickle's.

    Python tells a `__getstate__` nothing of it; a pickler written in Python is among the callers.
    """
    frame = sys._getframe(1)
    while frame is not None:
        own = frame.f_locals.get("self") if frame.f_code.co_name == "dump" else None
        if isinstance(own, pickle.Pickler) and hasattr(own, "reducer_override"):
            return type(own)
        frame = frame.f_back  # type: ignore[assignment]
    return pickle.Pickler


def writes_functions() -> bool:
    """Whether the active pickler serializes functions that other processes cannot import."""
    return current_pickler() is not pickle.Pickler


# ---------------------------------------------------------------------------------------------- langchain_core: messages and models

UNPARSABLE: Final = "!}"
"""The prefix of arguments that must not run. Core's repair of partial JSON gives up on it at once, whatever follows and however often
chunks are summed. ("!" alone works too, but in time that grows with the square of the arguments.)"""

CACHE_KEY: Final = "_serialized"
"""The entry of a model's `__dict__` in which core caches the model's serialized form; copies with other fields must drop it."""


def input_messages(model: BaseChatModel, input: LanguageModelInput) -> list[BaseMessage]:
    """Return the input of `invoke` or `stream` as messages."""
    return model._convert_input(input).to_messages()


def normalized_messages(model: BaseChatModel, input: LanguageModelInput) -> list[BaseMessage]:
    """Return the input of a request as the messages that core gives `_stream` and `_generate`."""
    messages = input_messages(model, input)
    return _normalize_messages(messages) if may_hold_files(messages) else messages


OF_FILES: Final = ("image", "audio", "file", "input_audio")
"""The types of the blocks that core converts."""


def may_hold_files(messages: Sequence[BaseMessage]) -> bool:
    """Whether core may convert a block of a message. This is asked of all messages before each request, so it calls no function for one."""
    for message in messages:
        content = message.content
        for block in content if content.__class__ is not str else ():
            is_file = block.__class__ is dict and "type" in block and block["type"] in OF_FILES
            if is_file or (block.__class__ is not dict and block.__class__ is not str):
                return True
    return False


def new_message_id(config: RunnableConfig | None) -> str:
    """Return the id that core gives a reply without one: that of its LLM run, which the configuration may set."""
    return f"{LC_ID_PREFIX}-{(config or {}).get('run_id') or uuid7()}"


def should_stream(model: BaseChatModel, keywords: Mapping[str, Any], *, async_api: bool) -> bool:
    """Whether core's `stream` would stream rather than invoke.

    Args:
        model: The model.
        keywords: The call's keywords.
        async_api: Whether `astream` is asked about.
    """
    return model._should_stream(async_api=async_api, **{**keywords, "stream": True})


def whole_reply(error: BaseException) -> AIMessage | None:
    """Return the reply that core had whole when an error ended its LLM run; None if there was none.

    A callback handler that raises in `on_llm_end`, and a cache that cannot store, take the reply with them: core holds it in local
    variables alone.
    """
    frames = [frame for frame, _ in walk_tb(error.__traceback__) if frame.f_globals.get("__name__") == BaseChatModel.__module__]
    results = [one for frame in frames for one in frame.f_locals.get("results", ()) if isinstance(one, ChatResult)]
    streamed = [frame.f_locals.get("generation") for frame in frames]
    for made in (*streamed, *(one for result in results for one in result.generations)):
        if isinstance(made, ChatGeneration) and isinstance(made.message, AIMessage):
            return cast("AIMessage", message_chunk_to_message(made.message))
    return None


# ---------------------------------------------------------------------------------------------- langchain_core: tools


def is_core(method: Any) -> bool:
    """Whether a method is defined by core itself."""
    return str(getattr(method, "__module__", "")).startswith("langchain_core.")


class InjectedByType(InjectedToolArg, _DirectlyInjectedToolArg):
    """Base class of types that are injected: core hides parameters of such a type from models and traces."""


def is_inferred(schema: Any) -> bool:
    """Whether core itself has made a tool's class of arguments, from the signature of a function."""
    return getattr(schema, "__module__", None) == "langchain_core.utils.pydantic"


def described_parameters(function: Any, names: Collection[str]) -> tuple[str, Mapping[str, str]]:
    """Return what a docstring in Google's style says of a function, and of its parameters."""
    return _parse_google_docstring(getdoc(function), list(names))


def with_methods(tool: _T, methods: Mapping[str, Any]) -> _T:
    """Return a copy of a tool with `_run` or `_arun` replaced."""
    changed = tool.__copy__()
    changed.__dict__.update(methods)
    return changed


def raised_by_handler(error: BaseException, own: str) -> bool:
    """Whether an exception from a tool's `invoke` comes from a callback handler with `raise_error=True`, not from the tool.

    Args:
        error: The exception.
        own: The name of the module that called the tool.
    """
    for frame, _ in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module == "langchain_core.callbacks.manager":
            return True
        if module != own and not module.startswith("langchain_core.tools"):
            return False
    return False


# ---------------------------------------------------------------------------------------------- langgraph, where it is loaded


def graph_class(name: str) -> Any:
    """Return a class of `langgraph.prebuilt` if the program has loaded it; else None."""
    return getattr(sys.modules.get("langgraph.prebuilt"), name, None)


def graph_runtime() -> Any:
    """Return the runtime of the surrounding graph, or None."""
    current = getattr(sys.modules.get("langgraph.runtime"), "get_runtime", None)
    if current is None:
        return None
    try:
        return current()
    except (RuntimeError, KeyError, AttributeError):  # not inside a graph
        return None


def new_graph_runtime() -> Any:
    """Return the runtime of the surrounding graph, or one of no graph; requires that the program has loaded LangGraph."""
    return graph_runtime() or sys.modules["langgraph.runtime"].Runtime()


def middleware_types() -> Any:
    """Return LangChain's module of types for middleware.

    Raises:
        ImportError: LangChain is not installed, or has none.
    """
    return import_module("langchain.agents.middleware.types")


def is_resumed(config: RunnableConfig) -> bool:
    """Whether the surrounding graph resumes its node after an interrupt.

    LangGraph then hands out the answers in the order in which the node asks again, whoever asks.
    """
    return bool((config.get("configurable") or {}).get("__pregel_resuming"))


def is_graph_signal(error: BaseException) -> bool:
    """Whether an exception is a signal to the graph: an interrupt, a command to its parent, or a request for a resume value."""
    errors = sys.modules.get("langgraph.errors")
    bubble_up, is_invalid_resume = getattr(errors, "GraphBubbleUp", None), getattr(errors, "is_invalid_resume", None)
    return (bubble_up is not None and isinstance(error, bubble_up)) or (is_invalid_resume is not None and is_invalid_resume(error))


def asks_for_a_graph(error: BaseException) -> bool:
    """Whether an exception means that code required a surrounding graph (a stream writer, a store, an interrupt) in vain."""
    return isinstance(error, KeyError) and str(error.args[:1]).startswith("('__pregel_")


# ---------------------------------------------------------------------------------------------- Python


def is_loop_ending() -> bool:
    """Whether `asyncio.run` is ending, and cancels what its function has left: it logs each task that ends in an exception then."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_cancel_all_tasks" and frame.f_globals.get("__name__") == "asyncio.runners":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def is_unterminated(error: JSONDecodeError) -> bool:
    """Whether JSON text ended inside a string."""
    return error.msg.startswith("Unterminated string")
