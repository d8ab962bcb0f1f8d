"""The ways to run a model, who may listen, and what came of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, message_chunk_to_message
from langchain_core.tracers._streaming import _V2StreamingCallbackHandler

from langchain_autotools import ChatOpenAI, new_messages
from tests.laws.stories import Said
from tests.support.openai_server import OpenAIServer, Script
from tests.support.strict import Rules

WAYS = ("invoke", "stream", "ainvoke", "astream")
QUESTION = HumanMessage("How warm is it?")


class Listener(BaseCallbackHandler):
    """Hears tokens."""

    def on_llm_new_token(self, token: str, **_: Any) -> None:
        """Hear one."""


class AsyncListener(AsyncCallbackHandler):
    """Hears tokens, asynchronously."""

    async def on_llm_new_token(self, token: str, **_: Any) -> None:
        """Hear one."""


class Tap(BaseCallbackHandler):
    """What `astream_log` and `astream_events` attach: core then streams every turn, also of `invoke`."""

    def tap_output_iter(self, run_id: Any, output: Iterator[Any]) -> Iterator[Any]:
        """Hand on."""
        return output

    def tap_output_aiter(self, run_id: Any, output: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Hand on."""
        return output


class EventTap(BaseCallbackHandler, _V2StreamingCallbackHandler):
    """What LangGraph's v3 event streams attach: core then takes every turn of `invoke` through its event bridge."""


LISTENERS: dict[str, Callable[[], list[Any]]] = {
    "nobody": list,
    "a listener": lambda: [Listener()],
    "an asynchronous listener": lambda: [AsyncListener()],
    "a tap": lambda: [Tap()],
    "an event tap": lambda: [EventTap()],
    "all": lambda: [Listener(), Tap(), EventTap()],
}


class After:
    """What a run is cancelled by: a function that says so once it was asked some times.

    Args:
        times: How often it says no.
    """

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self) -> bool:
        """Whether the run is cancelled."""
        self._left -= 1
        return self.said

    @property
    def said(self) -> bool:
        """Whether it has told the run so: a run that ended before does not know."""
        return self._left < 0


@dataclass
class Ran:
    """What a run gave.

    Attributes:
        new: The new messages that the caller collected, from the chunks and from the error.
        message: The run message; None where the run failed or was left.
        chunks: The chunks, where there were any.
        error: What ended the run.
        delivered: How many of `new` chunks had brought.
    """

    new: list[BaseMessage] = field(default_factory=list)
    message: AIMessage | None = None
    chunks: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    delivered: int = 0


class _Loop:
    """One event loop in a thread, for the asynchronous ways of synchronous tests."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """What the coroutine returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(120)

    def stop(self) -> None:
        """Close what generators hold, and end."""
        self.run(self.loop.shutdown_asyncgens())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


_loops: list[_Loop] = []


def waited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns, run on the loop that all laws share."""
    if not _loops:
        _loops.append(_Loop())
    return _loops[0].run(coroutine)


def stop_loops() -> None:
    """End the shared loop."""
    while _loops:
        _loops.pop().stop()


def chat(server: OpenAIServer, **fields: Any) -> ChatOpenAI:
    """A model that talks to the server, without limits that a random script would meet by chance."""
    return ChatOpenAI(
        **{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "timeout": 60, "no_progress": None, **fields}
    )


@contextmanager
def serving(script: Script, rules: Rules = Rules()) -> Iterator[OpenAIServer]:  # noqa: B008 - frozen
    """A strict server; afterwards: it refused nothing. One that sends its reasoning takes it back, as such servers do."""
    if any(said.reasoning for entry in getattr(script, "replies", ()) if isinstance(said := getattr(entry, "said", entry), Said)):
        rules = replace(rules, message_keys=[*rules.message_keys, "reasoning_content"])
    with OpenAIServer(script, rules=rules) as server:
        yield server
        assert [rejection.message for rejection in server.rejections] == []


def summed(chunks: Sequence[Any]) -> Any:
    """The message that chunks sum to."""
    return message_chunk_to_message(reduce(add, chunks))


def run(way: str, model: Any, messages: Any, *, listeners: str = "nobody", config: Mapping[str, Any] = {}, **keywords: Any) -> Ran:
    """Run a model in the named way; an error is kept, not raised."""
    config = {"callbacks": LISTENERS[listeners](), **config}
    ran = Ran()
    try:
        if way == "invoke":
            ran.message = model.invoke(messages, config, **keywords)
        elif way == "ainvoke":
            ran.message = waited(model.ainvoke(messages, config, **keywords))
        elif way == "stream":
            for chunk in model.stream(messages, config, **keywords):
                _take(ran, chunk)
        else:
            waited(_take_all(ran, model.astream(messages, config, **keywords)))
    except (Exception, KeyboardInterrupt, asyncio.CancelledError) as error:
        ran.error = error
        ran.new += new_messages(error)
        return ran
    if ran.message is None:
        ran.message = summed(ran.chunks)
    else:
        ran.new = new_messages(ran.message)
    return ran


async def _take_all(ran: Ran, chunks: AsyncIterator[Any]) -> None:
    async for chunk in chunks:
        _take(ran, chunk)


def _take(ran: Ran, chunk: Any) -> None:
    ran.chunks.append(chunk)
    ran.new += new_messages(chunk)
    ran.delivered = len(ran.new)


# ---------------------------------------------------------------------------------------------- how often a law is tried


def law(few: int, many: int = 500, *, shrinks: bool = True) -> Callable[[Callable[..., None]], Any]:
    """A law as a test over random data: `few` examples each time, `many` under the marker `exhaustive` (test_many.py).

    One whose examples are slow, and none simpler than the others, does not shrink those that fail.
    """
    phases = [phase for phase in settings.default.phases if shrinks or phase is not Phase.shrink]

    def decorate(check: Callable[..., None]) -> Any:
        test = settings(max_examples=few, phases=phases)(given(st.data())(check))
        test.many = settings(max_examples=many, phases=phases)(given(st.data())(check))  # type: ignore[attr-defined]
        return test

    return decorate
