"""A model of one's own: what it is called, and mistakes in the methods that make its requests."""

import functools
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_autotools import ConfigurationError, ToolsAndMessagesMixin
from langchain_autotools.testing import ScriptedChatModel

HELLO = AIMessageChunk(content="Hello")


def made(**methods: Any) -> Any:
    """A class with these methods."""
    return type("ChatX", (ToolsAndMessagesMixin, BaseChatModel), methods)


def raw_stream(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
    """A sound one."""
    yield HELLO


# ---------------------------------------------------------------------------------------------- the name of its kind


def test_a_model_of_ones_own_needs_no_name_of_its_kind() -> None:
    """It is that of its class."""
    model = made(raw_stream=raw_stream)()
    assert (model._llm_type, model.invoke("Hi").text, model.asdict()["_type"]) == ("ChatX", "Hello", "ChatX")


def test_the_name_of_a_whole_model_behind_the_mixin_stays() -> None:
    """Also through classes between, and a class's own goes before."""

    class Between(ToolsAndMessagesMixin, FakeListChatModel):
        pass

    class Own(Between):
        @property
        def _llm_type(self) -> str:
            return f"own-{super()._llm_type}"

    assert Between(responses=["Hi"])._llm_type == FakeListChatModel(responses=["Hi"])._llm_type == "fake-list-chat-model"
    assert Own(responses=["Hi"])._llm_type == "own-fake-list-chat-model"


# ---------------------------------------------------------------------------------------------- mistakes


async def asynchronous_stream(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
    """Yields asynchronously."""
    yield HELLO


async def asynchronous_value(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
    """Returns asynchronously."""
    return HELLO


def returns_message(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
    """Returns a message."""
    return AIMessageChunk(content="Hello")


def returns_name(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
    """Returns a message by its name."""
    reply = AIMessage("Hello")
    return reply


def returns_text(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
    """Returns a text."""
    if stop:
        return iter(())
    return f"Hello {messages}"


def returns_annotated(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> AIMessageChunk:
    """Says that it returns a message."""
    return self.reply(messages)  # type: ignore[no-any-return]


def returns_nothing(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
    """Forgets its chunk."""
    AIMessageChunk(content="Hello")


def too_few(self: Any, messages: Any) -> Any:
    """Takes no stop."""
    yield HELLO


def no_keywords(self: Any, messages: Any, stop: Any = None) -> Any:
    """Takes no tools."""
    yield HELLO


def no_self(messages: Any, stop: Any = None, **kwargs: Any) -> Any:
    """Forgets self."""
    yield HELLO


def too_many(self: Any, messages: Any, stop: Any, run_manager: Any, **kwargs: Any) -> Any:
    """Is left over from `_stream`."""
    yield HELLO


MISTAKES: list[tuple[str, Any, str]] = [
    ("raw_stream", asynchronous_stream, "is asynchronous: write `def`, and call what is `async def` araw_stream"),
    ("raw_stream", asynchronous_value, "is asynchronous"),
    ("raw_stream", returns_message, "returns a message: `yield` it"),
    ("raw_stream", returns_name, "returns a message: `yield` it"),
    ("raw_stream", returns_text, "returns a message: `yield` it"),
    ("raw_stream", returns_annotated, "returns a message: `yield` it"),
    ("raw_stream", returns_nothing, "neither yields nor returns anything"),
    ("raw_stream", too_few, r"takes \(self: Any, messages: Any\) -> Any, and is called as \(self, messages, stop=None, \*\*kwargs\)"),
    ("raw_stream", no_keywords, "takes .*called as .*got an unexpected keyword argument 'tools'"),
    ("raw_stream", no_self, "takes .*called as .*too many positional arguments"),
    ("raw_stream", too_many, "takes .*called as .*missing a required argument: 'run_manager'"),
    ("araw_stream", asynchronous_value, "has no `yield`"),
    ("araw_stream", raw_stream, "is not asynchronous: write `async def`"),
    ("araw_stream", returns_message, "returns a message: `yield` it"),
    ("raw_invoke", raw_stream, "yields: it must return one message; what yields is called raw_stream"),
    ("raw_invoke", asynchronous_value, "is asynchronous: write `def`, and call what is `async def` araw_invoke"),
    ("araw_invoke", asynchronous_stream, "yields: it must return one message; what yields is called araw_stream"),
    ("raw_invoke", lambda self, messages: HELLO, r"takes \(self, messages\), and is called as"),
]


@pytest.mark.parametrize(("name", "method", "words"), MISTAKES, ids=lambda value: getattr(value, "__name__", str(value)[:12]))
def test_a_mistake_is_one_error_when_the_class_is_made(name: str, method: Callable[..., Any], words: str) -> None:
    """It names the class and the method, and says what to write; one that comes from a plain class is found too."""
    sound = {} if name == "raw_stream" else {"raw_stream": raw_stream}
    with pytest.raises(ConfigurationError, match=rf"^ChatX\.{name} {words}"):
        made(**sound, **{name: method})
    plain = type("Plain", (), {name: method})
    with pytest.raises(ConfigurationError, match=rf"^Mixed\.{name} {words}"):
        type("Mixed", (plain, ToolsAndMessagesMixin, BaseChatModel), sound)


def test_a_message_of_a_function_without_source_is_refused_when_it_is_called() -> None:
    """Nothing is known of what it returns before; the error says the same."""
    names: dict[str, Any] = {"AIMessageChunk": AIMessageChunk}
    exec("def raw_stream(self, messages, stop=None, **kwargs):\n    return AIMessageChunk(content='Hello')", names)
    with pytest.raises(ConfigurationError, match="raw_stream yields AIMessageChunks .* not tuple: `yield` a message, do not `return` it"):
        made(raw_stream=names["raw_stream"])().invoke("Hi")


# ---------------------------------------------------------------------------------------------- what is none


def returns_iterator(self: Any, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
    """Returns what another one yields."""
    reply: Any = AIMessage("Hello")
    reply = iter([reply])
    return reply  # type: ignore[no-any-return]


def returns_list(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns chunks in a list."""

    def inner() -> Any:
        return AIMessage("not this one")

    return [HELLO] if args else inner()


def own_names(self: Any, history: Any, stops: Any = (), tools: Any = None, tool_choice: Any = None) -> Any:
    """Names its arguments as it likes."""
    yield "Hello"


def decorated(function: Callable[..., Any]) -> Any:
    """Makes a stream of what returns a message."""

    @functools.wraps(function)
    def stream(*args: Any, **kwargs: Any) -> Any:
        yield function(*args, **kwargs)

    return stream


@pytest.mark.parametrize("method", [returns_iterator, returns_list, own_names, decorated(returns_message)], ids=lambda one: one.__name__)
def test_what_works_is_not_refused(method: Callable[..., Any]) -> None:
    """Generators, and functions that return an iterator; decorators are not judged."""
    assert made(raw_stream=method)().invoke("Hi").text == "Hello"


def test_stubs_and_ports_are_not_refused() -> None:
    """A base class may leave its methods open; methods of LangChain's own are not looked at."""

    class Base(ToolsAndMessagesMixin, BaseChatModel):
        @abstractmethod
        def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
            """Left to subclasses."""

        def raw_invoke(self, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
            """Not here."""
            raise NotImplementedError

    class Port(ToolsAndMessagesMixin, BaseChatModel):
        def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
            yield ChatGenerationChunk(message=HELLO)

    class Generates(ToolsAndMessagesMixin, BaseChatModel):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage("Hello"))])

    class Follows(ScriptedChatModel):
        def raw_stream(self, *args: Any, **kwargs: Any) -> Iterator[AIMessage]:
            return super().raw_stream(*args, **kwargs)

        async def araw_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[AIMessage]:
            async for chunk in super().araw_stream(*args, **kwargs):
                yield chunk

    class Whole(Base):
        raw_stream = raw_stream

        def raw_invoke(self, messages: Any, stop: Any = None, **kwargs: Any) -> AIMessage:
            return AIMessage("Hello")

    assert {model.invoke("Hi").text for model in (Port(), Generates(), Follows(replies=["Hello"]), Whole())} == {"Hello"}
