"""Sends what a caller may ask for through a conversation on loopback and judges what of each leaf the requests hold."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import ne
from typing import Any

from langchain_core.messages import AIMessage, convert_to_messages

from langchain_autotools import new_messages
from langchain_autotools.errors import ConfigurationError, UnsupportedFeatureError
from tests.support.http_server import Exchange
from tests.support.strict import Rejection
from tests.vendor_types.reading import (
    ECHO,
    IN_MESSAGE,
    KEPT,
    LOST,
    MADE,
    REFUSED,
    RUNS,
    SOME,
    as_data,
    holds,
    look_up,
    says_its_place,
)
from tests.vendor_types.rows import Body, Row
from tests.vendor_types.samples import Leaf, Rules, Sampler, alone, leaves, plain

REFUSALS = (ConfigurationError, UnsupportedFeatureError)
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class Given:
    """What a conversation is given.

    Attributes:
        arguments: Arguments of the constructor.
        keywords: Keywords of the call.
        bound: Tools that are bound.
        history: The messages.
        said: What the first reply says besides its call: the reply of the wire with this in its place.
        then: The messages that follow that run.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)
    bound: Sequence[Any] = ()
    history: Sequence[Any] = ("Hello",)
    said: Any = None
    then: Sequence[Any] = ("Go on",)


@dataclass(frozen=True)
class Asked:
    """What a caller may ask for on one wire.

    Attributes:
        name: Its name on the page.
        wire: The wire.
        type: The type that names it.
        members: The types of what is sampled, by the path of each.
        give: A conversation that is given a value: by the path of its member, the value, and whether the constructor takes it.
        places: The keys of a request that may hold it; all others if it begins with `not`.
        reply: The reply of the wire, which says what it is given.
        rules: What the samples observe.
        streamed: Members that only streamed requests have.
        vendor: Raises what the vendor's documentation says that it refuses in a request's body.
        ways: The ways in which it is asked.
    """

    name: str
    wire: Row
    type: type[Any]
    members: Callable[[], Mapping[str, Any]]
    give: Callable[[str, Any, bool], Given]
    places: tuple[str, ...]
    reply: Callable[[Any], Body]
    rules: Rules = field(default_factory=Rules)
    streamed: frozenset[str] = frozenset()
    vendor: Callable[[Body], Any] = field(default=lambda body: body)
    ways: tuple[str, ...] = ("invoke", "ainvoke", "stream", "astream")

    @property
    def distribution(self) -> str:
        """The package that defines the type."""
        return self.wire.distribution

    def samples(self) -> Iterator[tuple[str, Any]]:
        """The samples, each with the path of its member."""
        sampler = Sampler(self.rules)
        for path, annotation in self.members().items():
            for sample in sampler.samples(annotation, path):
                yield path, sample

    def read(self, exchange: Exchange) -> Any:
        """What of a request may hold it."""
        body = exchange.json
        if self.places[0] != "not":
            return {key: body[key] for key in self.places if key in body}
        headers = {name: value for name, value in exchange.headers.items() if name.startswith("anthropic-")}
        return [exchange.path, headers, {key: value for key, value in body.items() if key not in self.places}]


@dataclass(frozen=True)
class Sent:
    """What a conversation sent.

    Attributes:
        requests: Of each request that may hold a value what may hold it.
        refusal: The error that says what is refused.
        messages: The AI messages of its history, as data.
        of_vendor: What the vendor, by its documentation, says to the value itself.
    """

    requests: list[Any]
    refusal: str = ""
    messages: list[Any] = field(default_factory=list)
    of_vendor: str = ""

    def verdict(self, leaf: Leaf) -> str:
        """The verdict on a leaf with a value of its own."""
        if self.refusal:
            return REFUSED if _names(self.refusal, leaf.path) else LOST
        found = [holds(request, leaf.value) for request in self.requests]
        if any(found):
            return KEPT if all(found) else SOME
        if says_its_place(leaf):
            return ECHO
        return IN_MESSAGE if holds(self.messages, leaf.value) else REFUSED if _names(self.of_vendor, leaf.path) else LOST

    @property
    def text(self) -> str:
        """Everything."""
        return json.dumps([self.requests, self.refusal], default=str)

    @property
    def said(self) -> str:
        """The AI messages, without what differs from run to run."""
        return MADE.sub("", json.dumps(self.messages, default=str, sort_keys=True))


Send = Callable[[Asked, Any, str, str, Any], Awaitable[Sent]]
"""Sends a value of a row to a server, in one way, by the path of its member."""


def _names(refusal: str, path: str) -> bool:
    """Whether an error names what it refuses: the parameter, its key, or the kind of a block or tool."""
    parts = [re.sub(r"[\[\]{}]", "", part) for part in path.split(".")]
    kinds = re.findall(r"<([^>]+)>", path)
    words = {re.sub("<.*", "", parts[0]), re.sub("<.*", "", parts[-1]), *kinds}
    snake = {re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), word) for word in words}
    return bool((words | snake) & set(_WORDS.findall(refusal)))


rank = (REFUSED, ECHO, KEPT, SOME, IN_MESSAGE, LOST).index
"""How much a verdict counts beside others."""


def worst(ways: Mapping[str, str]) -> str:
    """The verdict on a leaf in all its ways: lost if in any, refused if in all."""
    return max(ways.values(), key=rank)


async def asked(row: Asked, ways: Sequence[str] = (), send: Send | None = None, *, every: int = 1) -> dict[str, dict[str, str]]:
    """The verdicts on all leaves of a row, by path and way, or on those of every n-th sample.

    Each other value of a leaf is one conversation more: these are left to the synchronous ways, which ask alike. Of another's package
    (`send`) the best that becomes of a leaf counts, and what is refused with others is tried alone.
    """
    verdicts: dict[str, dict[str, str]] = {}
    send, choose = send or ours, min if send else max
    with row.wire.serve() as server:
        for way in ways or row.ways:
            known: set[str] = set()
            for path, sample in list(row.samples())[::every]:
                if path in row.streamed and "stream" not in way:
                    continue
                base = await send(row, server, way, path, plain(sample))
                asking = (send, row, server, way, path)
                for leaf in leaves(sample):
                    given, said = sample, base
                    if base.refusal and choose is min:
                        given = alone(sample, leaf)
                        said = await send(row, server, way, path, plain(given))
                    if not leaf.others:
                        _note(verdicts, leaf, way, said.verdict(leaf), choose)
                    elif not way.startswith("a") and (said.refusal or leaf.path not in known):
                        known |= set() if said.refusal else {leaf.path}
                        _note(verdicts, leaf, way, await _changed(asking, given, leaf, said), choose)
    return verdicts


def _note(verdicts: dict[str, dict[str, str]], leaf: Leaf, way: str, verdict: str, choose: Callable[..., str]) -> None:
    """Record a leaf of one more sample: what refuses another leaf of a sample refuses all of it."""
    ways = verdicts.setdefault(leaf.path, {})
    ways[way] = choose(ways.get(way, verdict), verdict, key=rank)


async def _changed(asking: tuple[Send, Asked, Any, str, str], sample: Any, leaf: Leaf, base: Sent) -> str:
    """The verdict on a leaf whose other values must make a difference."""
    send, *where = asking
    if base.refusal:
        return REFUSED if _names(base.refusal, leaf.path) else LOST
    found: set[str] = set()
    for other in leaf.others:
        sent = await send(*where, plain(sample, {leaf: other}))
        if sent.refusal:
            found.add(REFUSED if _names(sent.refusal, leaf.path) else LOST)
        elif sent.text != base.text:
            return KEPT if all(map(ne, sent.requests, base.requests)) else SOME
        elif sent.said != base.said:
            found.add(IN_MESSAGE)
    return next((one for one in (REFUSED, IN_MESSAGE) if found == {one}), LOST)


def replies_in(history: Sequence[Any]) -> list[Any]:
    """The AI messages of a history, as data."""
    return [as_data(message) for message in convert_to_messages(history) if isinstance(message, AIMessage)]


def _refusal(row: Asked, value: Any) -> str:
    """What the vendor says to a message, by its documentation; "" if it takes it."""
    try:
        row.vendor({"messages": [value]})
    except Rejection as error:
        return str(error)
    return ""


def replies_to(row: Asked, given: Given) -> list[Any]:
    """The replies of a conversation: one that makes a call besides what it says, and those that end a run."""
    first, last = row.wire.script(row.reply(given.said))[0], row.wire.script(row.reply(None))[1]
    return [first, last, last]


async def ours(row: Asked, server: Any, way: str, path: str, value: Any) -> Sent:
    """What our model sends of a value."""
    given, wire = row.give(path, value, way in ("invoke", "astream")), row.wire
    server._replies[:] = replies = replies_to(row, given)
    del server.exchanges[:]
    history = list(given.history)
    settings = {"tools": [look_up], "max_turns": 2, "on_limit": "return", **wire.arguments, **given.arguments}
    try:
        model = wire.model(server.url, **settings)
        model = model.bind_tools(given.bound) if given.bound else model
        run = await RUNS[way](model, history, **given.keywords)
        if given.said is not None:  # also what ends a turn is in the next run's request
            server._replies[:] = replies[1:]
            del server.exchanges[:]
            history += new_messages(run)
            await RUNS[way](model, [*history, *given.then])
    except REFUSALS as error:
        return Sent([], str(error))
    return Sent([row.read(exchange) for exchange in server.exchanges], "", replies_in(history), _refusal(row, value))
