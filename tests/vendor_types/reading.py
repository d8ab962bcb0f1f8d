"""Sends samples through a conversation on loopback and judges what of each leaf its messages hold."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools import new_messages
from langchain_autotools.messages.metadata import KEY
from tests.vendor_types.rows import Body, Row
from tests.vendor_types.samples import Leaf, Sampler, leaves, plain

KEPT, ECHO, LOST, REFUSED, SOME = "kept", "an echo", "LOST", "refused", "in some requests"
IN_MESSAGE = "in the message"
MADE = re.compile(r"call_[0-9a-f]{32}|lc_run-[0-9a-f-]+|run-[0-9a-f-]+|[0-9a-f]{8}-[0-9a-f-]{27}")
_OF_A_RUN = frozenset({"messages", "stop_reason", "turns", "usage"})


def look_up(key: str) -> str:
    """Look something up."""
    return f"found {key}"


def says_its_place(leaf: Leaf) -> bool:
    """Whether a leaf is the number of the first entry of its list, which says nothing else."""
    return bool(leaf.path.endswith("[].index") and leaf.value == 0)


@dataclass
class Verdicts:
    """What became of the leaves of one row: by path and way, kept or lost.

    Attributes:
        found: The verdicts.
        lenient: Whether a leaf counts as kept that is in any sample; else it has to be in all.
    """

    found: dict[str, dict[str, str]] = field(default_factory=dict)
    lenient: bool = False

    def note(self, leaf: Leaf, way: str, kept: bool) -> None:
        """Record a leaf of one more sample. The number of an entry that says its place in the list is an echo of it."""
        ways = self.found.setdefault(leaf.path, {})
        before = ways.get(way)
        if says_its_place(leaf):
            ways[way] = ECHO
        elif self.lenient:
            ways[way] = KEPT if kept or before == KEPT else LOST
        else:
            ways[way] = KEPT if kept and before in (None, KEPT) else LOST


@dataclass(frozen=True)
class Told:
    """What a conversation told its caller: its messages as data, and its error."""

    replies: list[Any]
    run: Any
    error: str

    def holds(self, value: Any) -> bool:
        """Whether a value can be read in the message of each turn, and in that of the run unless it is of a call that was answered."""
        if not self.replies:
            return str(value) in self.error
        first = self.replies[0]
        of_calls = [first["tool_calls"], first["invalid_tool_calls"], first["response_metadata"].get(KEY)]
        return all(holds(reply, value) for reply in self.replies) and (holds(self.run, value) or holds(of_calls, value))

    @property
    def text(self) -> str:
        """Everything, without what differs from run to run."""
        return MADE.sub("", json.dumps([self.replies, self.run, self.error], default=str, sort_keys=True))


def holds(data: Any, value: Any) -> bool:
    """Whether a value is anywhere in data; of an object, all that is in it."""
    if isinstance(value, Mapping):
        return all(holds(data, one) for one in scalars(value))
    if isinstance(value, str):
        return any(isinstance(one, str) and value in one for one in scalars(data))
    return any(one.__class__ in (int, float) and one == value for one in scalars(data))


def scalars(data: Any) -> Iterator[Any]:
    """The keys and the values in data, in order."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield key
            yield from scalars(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from scalars(value)
    else:
        yield data


def as_data(message: BaseMessage) -> Any:
    """A message's fields, without what tells of its run and its place."""
    data = message.model_dump()
    own = data["response_metadata"].get(KEY)
    if own:
        data["response_metadata"][KEY] = {key: value for key, value in own.items() if key not in _OF_A_RUN}
    return {**data, "response_metadata": {key: value for key, value in data["response_metadata"].items() if key != "generation_id"}}


def told(messages: list[BaseMessage], run: BaseMessage | None, error: Exception | None = None) -> Told:
    """What a run told: each AI message, and the run message."""
    replies = [message for message in messages if isinstance(message, AIMessage)]
    return Told([as_data(message) for message in replies], as_data(run) if run else None, f"{error} {getattr(error, 'body', '')}")


class Ours:
    """Our model of a row, in one way."""

    def __init__(self, row: Row, way: str, url: str) -> None:
        self._model = row.model(url, tools=[look_up], max_turns=2, on_limit="return", **row.arguments)
        self._run = RUNS[way]

    async def talk(self) -> Told:
        """One conversation of two turns."""
        try:
            run = await self._run(self._model, "Hello")
        except Exception as error:  # what the vendor says of a failure is in it
            return told(list(new_messages(error)), None, error)
        return told(list(new_messages(run)), run)


async def _invoked(model: Any, given: Any = "Hello", /, **keywords: Any) -> Any:
    return model.invoke(given, **keywords)


async def _ainvoked(model: Any, given: Any = "Hello", /, **keywords: Any) -> Any:
    return await model.ainvoke(given, **keywords)


async def _streamed(model: Any, given: Any = "Hello", /, **keywords: Any) -> Any:
    chunks = list(model.stream(given, **keywords))
    return sum(chunks[1:], chunks[0])


async def _astreamed(model: Any, given: Any = "Hello", /, **keywords: Any) -> Any:
    chunks = [chunk async for chunk in model.astream(given, **keywords)]
    return sum(chunks[1:], chunks[0])


RUNS: dict[str, Callable[..., Awaitable[Any]]] = {"invoke": _invoked, "ainvoke": _ainvoked, "stream": _streamed, "astream": _astreamed}


def bodies(row: Row) -> list[Any]:
    """The samples of a row's type: what ends a turn otherwise comes by itself, in the first sample's reply."""
    samples = Sampler(row.rules).samples(row.type)
    common = [{key: value for key, value in sample.items() if key not in row.apart} for sample in samples]
    apart = {
        json.dumps([leaf.path for leaf in leaves(sample[key])]): (key, sample[key])
        for sample in samples
        for key in row.apart & sample.keys()
    }
    return common + [{**plain(common[0]), key: value} for key, value in apart.values()]


async def judged(row: Row, ways: tuple[str, ...] = (), speaker: Callable[..., Any] = Ours, *, every: int = 1) -> Verdicts:
    """The verdicts on all leaves of a row, or on those of every n-th sample.

    Each other value of a leaf is one conversation more: these are left to the synchronous ways, which read alike.
    """
    verdicts = Verdicts(lenient=speaker is not Ours)
    with row.serve() as server:
        for way in ways or row.ways:
            who = speaker(row, way, server.url)
            known: set[str] = set()
            for sample in bodies(row)[::every]:
                base = await _said(row, server, who, plain(sample))
                for leaf in leaves(sample):
                    if not leaf.others:
                        verdicts.note(leaf, way, base.holds(leaf.value))
                    elif leaf.path not in known and not way.startswith("a"):
                        known.add(leaf.path)
                        verdicts.note(leaf, way, await _differs(row, server, who, sample, leaf, base))
    return verdicts


async def _differs(row: Row, server: Any, who: Any, sample: Any, leaf: Leaf, base: Told) -> bool:
    """Whether another value of a leaf makes a difference that its reader sees."""
    for other in leaf.others:
        if (await _said(row, server, who, plain(sample, {leaf: other}))).text != base.text:
            return True
    return False


async def _said(row: Row, server: Any, who: Any, body: Body) -> Told:
    server._replies[:] = row.script(body)
    told: Told = await who.talk()
    return told
