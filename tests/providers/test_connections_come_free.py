"""A run that is cancelled gives its connection back, at whatever step of the HTTP library the cancellation arrives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn
from tests.support.scripted_server import Script, ScriptedServer

LIBRARIES = ("httpcore", "httpcore2")
_PARTS = ("send_request_headers", "send_request_body", "receive_response_headers", "receive_response_body", "response_closed")
STEPS = ("connect_tcp.complete", *(f"{part}.{when}" for part in _PARTS for when in ("started", "complete")))
"""The steps of a request that the HTTP libraries log, once it is connected. (Releases of anyio lose what they are connecting.)"""
ENOUGH = 20.0
"""Seconds within which the server must have seen that all connections are closed."""

_EACH_ITS_OWN = {"connection": "close"}
WIRES: dict[str, tuple[Callable[[Script], ScriptedServer], Any, dict[str, Any]]] = {
    "ollama": (OllamaServer, ChatOllama, {"client_kwargs": {"headers": _EACH_ITS_OWN}}),
    "openai": (OpenAIServer, ChatOpenAI, {"default_headers": _EACH_ITS_OWN}),
    "anthropic": (AnthropicServer, ChatAnthropic, {"default_headers": _EACH_ITS_OWN}),
    "google": (GoogleServer, ChatGoogleGenerativeAI, {"additional_headers": _EACH_ITS_OWN}),
}


@contextmanager
def at(step: str, act: Callable[[], None]) -> Iterator[None]:
    """Act as soon as an HTTP library logs a step."""

    class Acts(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith(step):
                act()

    handler, loggers = Acts(), [logging.getLogger(name) for name in LIBRARIES]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate


async def read(model: Any) -> None:
    """Read a stream to its end."""
    async for _ in model.astream("Hi"):
        pass


async def whole(model: Any) -> None:
    """Take a whole reply."""
    await model.ainvoke("Hi")


def later(rounds: int, act: Callable[[], Any]) -> None:
    """Act after so many rounds of the event loop."""
    if rounds:
        asyncio.get_running_loop().call_soon(later, rounds - 1, act)
    else:
        act()


def cancels(run: asyncio.Future[Any], behind: int, again: int | None) -> Callable[[], None]:
    """What cancels a run so many rounds of the event loop behind a step, and again so many behind that."""

    def cancel() -> None:
        later(behind, run.cancel)
        if again is not None:
            later(behind + again, run.cancel)

    return cancel


CASES = [(wire, again) for wire in WIRES for again in (None, 1, 2, 3)]
OFTEN = [("ollama", None), ("ollama", 1), ("openai", None), ("openai", 2)]
"""Of each HTTP library one wire."""


@pytest.mark.parametrize(("wire", "again"), [pytest.param(*case, marks=() if case in OFTEN else pytest.mark.exhaustive) for case in CASES])
async def test_a_cancelled_run_leaves_no_connection_open(wire: str, again: int | None) -> None:
    """Cancelled at each step and up to two rounds behind it, once, and again while what the first cancellation began is cleaned up."""
    serve, kind, fields = WIRES[wire]
    with serve([Turn("Hi")] * 6 * len(STEPS)) as server:
        model = kind(model="any", base_url=server.url, max_retries=0, api_key="key", **fields)
        cancelled = 0
        for step, behind, way in product(STEPS, range(3), (read, whole)):
            run = asyncio.ensure_future(way(model))
            with at(step, cancels(run, behind, again)):
                await asyncio.wait({run})
            cancelled += run.cancelled()
        async with asyncio.timeout(ENOUGH):
            while server.open_connections:
                await asyncio.sleep(0.01)
        assert cancelled > 40
