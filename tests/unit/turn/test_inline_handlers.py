"""Handlers that run inline are notified of an asynchronous reply's chunks at once, as the others are through core's manager."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessageChunk, BaseMessage

from langchain_autotools import ToolsAndMessagesMixin


class ChatWords(ToolsAndMessagesMixin):
    """Answers "a", then "b"."""

    @property
    def _llm_type(self) -> str:
        return "words"

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Yield both, and the end."""
        yield AIMessageChunk("a")
        yield AIMessageChunk("b")
        yield AIMessageChunk("", response_metadata={"finish_reason": "stop"})

    async def araw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Like `raw_stream`."""
        for chunk in self.raw_stream(messages, stop, **kwargs):
            yield chunk


class Inline(BaseCallbackHandler):
    """A handler as tracers are; records what it is called with."""

    run_inline = True

    def __init__(self) -> None:
        self.calls: list[tuple[Any, dict[str, Any]]] = []

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        """Record the call, with the text of its chunk."""
        self.calls.append((token, {**kwargs, "chunk": kwargs["chunk"].text}))


class Deaf(Inline):
    """An inline handler that takes no part in the runs of models."""

    ignore_llm = True


class Failing(Inline):
    """An inline handler that fails on every token."""

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        """Fail."""
        raise ValueError("no room")


class InlineAsync(AsyncCallbackHandler):
    """A handler that runs inline and must be awaited."""

    run_inline = True

    def __init__(self) -> None:
        self.calls: list[tuple[Any, dict[str, Any]]] = []

    async def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        """Record the call, as `Inline` does."""
        await asyncio.sleep(0)
        self.calls.append((token, {**kwargs, "chunk": kwargs["chunk"].text}))


async def _text_of(*handlers: Any) -> str:
    chunks = ChatWords(tools=[]).astream("hi", {"callbacks": list(handlers), "tags": ["mine"]})
    return "".join([chunk.text async for chunk in chunks])


def test_an_inline_handler_is_called_as_by_the_manager_of_core() -> None:
    """Alone it is called at once; beside a handler that must be awaited core calls both: with the same arguments either way."""
    alone, beside, awaited = Inline(), Inline(), InlineAsync()
    assert asyncio.run(_text_of(alone)) == asyncio.run(_text_of(beside, awaited)) == "ab"
    assert beside.calls == awaited.calls
    assert [(token, kwargs["chunk"], kwargs["tags"], kwargs["parent_run_id"]) for token, kwargs in alone.calls] == [
        (token, kwargs["chunk"], kwargs["tags"], kwargs["parent_run_id"]) for token, kwargs in beside.calls
    ]
    assert [token for token, _ in alone.calls][:2] == ["a", "b"]
    assert alone.calls[0][1].keys() == beside.calls[0][1].keys()
    assert len({kwargs["run_id"] for _, kwargs in alone.calls}) == 1


def test_an_inline_handler_that_ignores_models_is_not_called() -> None:
    """`ignore_llm` counts."""
    deaf = Deaf()
    assert asyncio.run(_text_of(deaf)) == "ab"
    assert deaf.calls == []


def test_an_inline_handler_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The reply goes on, and core's log names the handler."""
    assert asyncio.run(_text_of(Failing())) == "ab"
    assert "Failing.on_llm_new_token" in caplog.text


def test_an_inline_handler_may_end_the_reply() -> None:
    """With `raise_error` its exception ends the reply."""
    failing = Failing()
    failing.raise_error = True
    with pytest.raises(ValueError, match="no room"):
        asyncio.run(_text_of(failing))
