"""A stream that nobody watches goes past core's work for handlers: nobody can tell, save by its speed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.tracers.context import collect_runs
from pydantic import Field

from langchain_autotools import ToolsAndMessagesMixin, new_messages


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


class ChatLetters(ToolsAndMessagesMixin):
    """Answers "a", "b", "c"; after `breaks_after` letters it fails."""

    said: list[Any] = Field(default_factory=list)
    breaks_after: int | None = None
    message_id: str | None = None

    @property
    def _llm_type(self) -> str:
        return "letters"

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """The letters; notes its keywords, and its end."""
        self.said.append(sorted(kwargs))
        try:
            for number, letter in enumerate("abc"):
                if number == self.breaks_after:
                    raise ConnectionError("gone")
                yield AIMessageChunk(content=letter, id=self.message_id)
            usage = {"input_tokens": 1, "output_tokens": 3, "total_tokens": 4}
            metadata = {"finish_reason": "stop", "model_name": "letters"}
            yield AIMessageChunk(content="", usage_metadata=usage, response_metadata=metadata)
        finally:
            self.said.append("closed")

    async def araw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Like `raw_stream`."""
        for chunk in self.raw_stream(messages, stop, **kwargs):
            yield chunk


class Hears(BaseCallbackHandler):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.tokens: list[Any] = []
        self.errors: list[BaseException] = []

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        """Note it."""
        self.tokens.append(token)

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        """Note it."""
        self.errors.append(error)


async def _gathered(chunks: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in chunks]


def _streamed(model: ChatLetters, config: Any = None) -> list[AIMessageChunk]:
    return list(model.stream("hi", config))


def _astreamed(model: ChatLetters, config: Any = None) -> list[AIMessageChunk]:
    return asyncio.run(_gathered(model.astream("hi", config)))


ways = pytest.mark.parametrize("streamed", [_streamed, _astreamed], ids=["stream", "astream"])
Streamed = Callable[..., list[AIMessageChunk]]


def _without_run_ids(chunks: list[AIMessageChunk]) -> list[dict[str, Any]]:
    dumps = [chunk.model_dump() for chunk in chunks]
    assert len({dump["id"] for dump in dumps if dump["id"] and dump["id"].startswith("lc_run-")}) <= 1
    return [{**dump, "id": str(dump["id"]).partition("-")[0]} for dump in dumps]


@ways
@pytest.mark.parametrize("tools", [[], [shout]], ids=["no tools", "tools"])
@pytest.mark.parametrize("message_id", [None, "msg_1"], ids=["no id", "an id"])
@pytest.mark.parametrize("version", [None, "v1"])
def test_watched_or_not_the_chunks_are_the_same(streamed: Streamed, tools: list[Any], message_id: str | None, version: Any) -> None:
    """Content, metadata, usage, the kind of ids and the new messages, chunk by chunk."""
    model = ChatLetters(tools=tools, message_id=message_id, output_version=version)
    watched, unwatched = streamed(model, {"callbacks": [Hears()]}), streamed(model)
    if not tools:  # a carried message has its run's id
        assert _without_run_ids(watched) == _without_run_ids(unwatched)
    assert [chunk.content for chunk in watched] == [chunk.content for chunk in unwatched]
    assert [chunk.usage_metadata for chunk in watched] == [chunk.usage_metadata for chunk in unwatched]
    ((first,), (second,)) = ([message for chunk in chunks for message in new_messages(chunk)] for chunks in (watched, unwatched))
    assert first.content == second.content and first.usage_metadata == second.usage_metadata  # type: ignore[attr-defined]
    assert reduce(add, unwatched).text == "abc"


def _handler(kind: str, hears: Hears) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model's fields and a configuration with a handler in this place."""
    return ({"callbacks": [hears]}, {}) if kind == "the model" else ({}, {"callbacks": [hears]})


@ways
@pytest.mark.parametrize("kind", ["the model", "the configuration"])
@pytest.mark.parametrize("tools", [[], [shout]], ids=["no tools", "tools"])
def test_handlers_hear_every_token(streamed: Streamed, kind: str, tools: list[Any]) -> None:
    """Wherever a handler comes from, it is told of each chunk."""
    hears = Hears()
    fields, config = _handler(kind, hears)
    streamed(ChatLetters(tools=tools, **fields), config)
    assert hears.tokens == ["a", "b", "c", ""]


@ways
@pytest.mark.parametrize("context", [get_usage_metadata_callback, collect_runs])
def test_handlers_of_the_context_hear_of_the_run(streamed: Streamed, context: Callable[[], AbstractContextManager[Any]]) -> None:
    """Handlers that LangChain keeps in context variables are found."""
    with context() as heard:
        streamed(ChatLetters())
    known = heard.usage_metadata if context is get_usage_metadata_callback else heard.traced_runs
    assert len(known) == 1


@ways
@pytest.mark.parametrize("watched", [False, True])
def test_an_error_is_the_models_own(streamed: Streamed, watched: bool) -> None:
    """What `raw_stream` raises reaches the caller, and the handlers where there are some."""
    hears = Hears()
    with pytest.raises(ConnectionError, match="gone"):
        streamed(ChatLetters(breaks_after=2), {"callbacks": [hears]} if watched else None)
    assert [str(error) for error in hears.errors] == (["gone"] if watched else [])


def test_closing_a_stream_closes_the_request() -> None:
    """A caller who leaves after the first chunk leaves nothing open."""
    model = ChatLetters()
    chunks = model.stream("hi")
    assert next(chunks).text == "a" and model.said == [[]]
    chunks.close()  # type: ignore[attr-defined]
    assert model.said == [[], "closed"]


async def test_closing_an_asynchronous_stream_closes_the_request() -> None:
    """Like `stream`, and before `aclose` returns."""
    model = ChatLetters()
    chunks = model.astream("hi")
    assert (await anext(chunks)).text == "a" and model.said == [[]]
    await chunks.aclose()  # type: ignore[attr-defined]
    assert model.said == [[], "closed"]


@pytest.mark.parametrize("disabled", [True, False])
def test_only_the_callers_keywords_reach_the_vendor(disabled: bool) -> None:
    """The keyword between `stream` and `_stream` goes no further, streamed or not."""
    model = ChatLetters(disable_streaming=disabled)
    list(model.stream("hi", temperature=1))
    assert model.said == [["temperature"], "closed"]


class Turnstile(BaseRateLimiter):
    """Counts who comes through."""

    def __init__(self) -> None:
        self.passed = 0

    def acquire(self, *, blocking: bool = True) -> bool:
        """Let through."""
        self.passed += 1
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        """Let through."""
        return self.acquire()


@ways
def test_a_rate_limiter_is_asked_once_for_each_request(streamed: Streamed) -> None:
    """What core does before a request is still done."""
    turnstile = Turnstile()
    streamed(ChatLetters(rate_limiter=turnstile))
    assert turnstile.passed == 1
