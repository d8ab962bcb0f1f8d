"""LangChain's partner packages, as the machine talks with them: one request, its tools declared."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from langchain_core.messages import ToolMessage

from langchain_autotools.providers.google.decode import snake_keys
from tests.vendor_types.asking import Asked, Sent, replies_in, replies_to
from tests.vendor_types.reading import RUNS, Told, look_up, told
from tests.vendor_types.rows import Row

WAYS = ("invoke", "stream")


def is_installed(row: Row) -> bool:
    """Whether the partner package of a row is installed."""
    return find_spec(row.partner[0]) is not None


def partner_model(row: Row, url: str, **more: Any) -> Any:
    """The partner package's model of a row."""
    module, name = row.partner
    return getattr(import_module(module), name)(**{"model": "any", "base_url": url, **row.partner_arguments, **more})


class Theirs:
    """The partner package's model of a row, in one way."""

    def __init__(self, row: Row, way: str, url: str) -> None:
        self._model = partner_model(row, url).bind_tools([look_up])
        self._run = RUNS[way]

    async def talk(self) -> Told:
        """One reply."""
        try:
            reply = await self._run(self._model, "Hello")
        except Exception as error:  # what the vendor says of a failure is in it
            return told([], None, error)
        return told([reply], reply)


async def theirs(row: Asked, server: Any, way: str, path: str, value: Any) -> Sent:
    """What the partner package's model sends of a value: given to the constructor to be invoked, or to the call to be streamed.

    Google's takes tools with the names of the SDK's fields, not of the wire.
    """
    given = row.give(path, value, way == "invoke")
    server._replies[:] = replies_to(row, given)
    del server.exchanges[:]
    history = list(given.history)
    arguments = dict(given.arguments)
    named = snake_keys if row.distribution == "google-genai" else list
    tools = [look_up, *named([*arguments.pop("tools", [look_up])[1:], *given.bound])]
    try:
        model = partner_model(row.wire, server.url, **arguments).bind_tools(tools)
        reply = await RUNS[way](model, history, **given.keywords)
        if given.said is not None:
            del server.exchanges[:]
            history += [reply, *(ToolMessage("found", tool_call_id=call["id"]) for call in reply.tool_calls)]
            await RUNS[way](model, [*history, *given.then])
    except Exception as error:  # whatever another's package refuses by
        return Sent([], str(error))
    return Sent([row.read(exchange) for exchange in server.exchanges], messages=replies_in(history))
