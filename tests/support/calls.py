"""Calls for a `ToolExecutor`, and what their results say."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from langchain_autotools.executor import ToolCallResult, ToolExecutor

MADE_HERE = re.compile(r"call_[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}")
"""The id of a call whose server gave it none: a random UUID."""


def call(name: str, call_id: str = "1", /, **args: Any) -> dict[str, Any]:
    """One call."""
    return {"name": name, "args": args, "id": call_id}


def contents(executor: ToolExecutor, *calls: dict[str, Any]) -> list[Any]:
    """What the results of a turn say, in a synchronous and in an asynchronous run."""
    found = [message.content for message in executor.execute_all(calls)]
    assert [message.content for message in asyncio.run(executor.aexecute_all(calls))] == found
    return found


def error(result: ToolCallResult) -> str:
    """The text of an error result."""
    assert result.message.status == "error"
    content = json.loads(str(result.message.content))
    assert list(content) == ["error"]
    return str(content["error"])


def synchronously(executor: ToolExecutor, *calls: dict[str, Any], **options: Any) -> list[ToolCallResult]:
    """The results of some calls, of a synchronous run."""
    return list(executor.stream(calls, **options))


def asynchronously(executor: ToolExecutor, *calls: dict[str, Any], **options: Any) -> list[ToolCallResult]:
    """The same of an asynchronous run."""

    async def run() -> list[ToolCallResult]:
        return [result async for result in executor.astream(calls, **options)]

    return asyncio.run(run())


Way = Callable[..., list[ToolCallResult]]
both_ways = pytest.mark.parametrize("run", [synchronously, asynchronously])


async def run_calls(executor: ToolExecutor, is_async: bool, *calls: Any, **options: Any) -> list[str]:
    """What the results of a turn say, in a synchronous or in an asynchronous run."""
    if is_async:
        return [str(message.content) for message in await executor.aexecute_all(calls, **options)]
    return [str(message.content) for message in await asyncio.to_thread(executor.execute_all, calls, **options)]
