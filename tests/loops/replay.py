"""A recorded loop, replayed: our model asks, the recorded replies answer, and tools return the recorded results.

Turns that only a tool loop lies between are one run of ours. Where the recorded client did more (a new user message, an edited history),
a new run starts from the recorded request, in which the assistant's messages are those that our runs stored.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools import new_messages
from tests.loops.allowed import compared
from tests.loops.history import Desk, messages_of
from tests.loops.meaning import Atom, Call, Result, paired, plain
from tests.loops.records import Loop, Turn
from tests.loops.rows import Declared, Row
from tests.support.http_server import Exchange, HttpReply, LoopbackServer


class Player(LoopbackServer):
    """Answers every request with the next recorded reply, in one piece or in pieces of random length.

    With a `runner` our models are asked asynchronously, in its event loop.
    """

    def __init__(self, *, cut: bool = False, runner: asyncio.Runner | None = None) -> None:
        super().__init__(self._next)
        self._cut = cut
        self._runner = runner
        self._turns: list[Turn] = []
        self._loading = threading.Lock()

    def load(self, turns: Sequence[Turn]) -> None:
        """The replies to give from now on; what was asked before is forgotten."""
        with self._loading:
            self._turns = list(turns)
            self.exchanges.clear()

    def _next(self, exchange: Exchange) -> HttpReply:
        with self._loading:
            if not self._turns:
                return HttpReply([b"The recording has no further reply."], 400, {"content-type": "text/plain"})
            turn = self._turns.pop(0)
        pieces = list(_pieces(turn.body)) if self._cut else [turn.body]
        return HttpReply(pieces, turn.status, {"content-type": turn.content_type or "application/json"})

    def ask(self, model: Any, history: list[BaseMessage], *, streamed: bool) -> list[BaseMessage]:
        """The new messages of a model's answer, streamed where the recorded replies are."""
        if self._runner:
            return self._runner.run(_aask(model, history, streamed=streamed))
        if streamed:
            return [message for chunk in model.stream(history) for message in new_messages(chunk)]
        return new_messages(model.invoke(history))


async def _aask(model: Any, history: list[BaseMessage], *, streamed: bool) -> list[BaseMessage]:
    if streamed:
        return [message async for chunk in model.astream(history) for message in new_messages(chunk)]
    return new_messages(await model.ainvoke(history))


def _pieces(body: bytes) -> Iterator[bytes]:
    chance, start = random.Random(len(body)), 0
    while start < len(body):
        size = chance.choice((1, 7, 100, 1000))
        yield body[start : start + size]
        start += size


@dataclass
class Replayed:
    """What came of a loop: for each turn what we sent and what was recorded, and the texts that we read."""

    ours: list[list[Atom]] = field(default_factory=list)
    theirs: list[list[Atom]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    stored: dict[int, AIMessage] = field(default_factory=dict)
    runs: list[range] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The text of each turn."""
        return [self.stored[number].text for number in sorted(self.stored)]

    @property
    def driven(self) -> str:
        """How the loop was replayed."""
        if len(self.runs) == 1:
            return "one run"
        return "several runs" if any(len(run) > 1 for run in self.runs) else "turn by turn"


def histories_of(loop: Loop, row: Row) -> list[list[Atom]]:
    """The history that each request of a loop continues; of one that was not recorded, what it must have been to get these replies."""
    said: list[list[Atom]] = []
    for number, turn in enumerate(loop.turns):
        before = [*said[-1], *_reply(loop.turns[number - 1])] if number else []
        if not turn.request:
            said.append(paired([*before, *_results(loop.turns[number - 1])]) if number else [Atom("user", "text", "Go on.")])
        elif turn.request.get("previous_response_id"):
            known = {compared(atom) for atom in before}  # the server has them, though some clients send them again
            said.append(paired([*before, *(atom for atom in row.read(turn.request) if compared(atom) not in known)]))
        else:
            said.append(row.read(turn.request))
    return said


def _calls(turn: Turn) -> list[Call]:
    """What the reply called: a function with its arguments, or a custom tool, or what is no object, with its text."""
    return [
        Call(call["id"], call["name"], call["args"] if call["args_ok"] and call["kind"] == "function" else call["args_raw"])
        for call in turn.expected["tool_calls"]
    ]


def _reply(turn: Turn) -> list[Atom]:
    text = [Atom("assistant", "text", turn.expected["text"])] if turn.expected["text"] else []
    return text + [Atom("assistant", "call", call) for call in _calls(turn)]


def _results(turn: Turn) -> list[Atom]:
    return [Atom("tool", "result", Result(call.id, call.name, (("text", f"Done: {call.name}."),))) for call in _calls(turn)]


def segments(loop: Loop, row: Row, said: Sequence[Sequence[Atom]]) -> list[range]:
    """The turns of each run of ours. A turn whose calls the client answered in a way of its own is a run of its own."""
    joined = [
        turn.status < 400 and _only_tools(turn, said[number], said[number + 1]) and _own_tools(turn, loop.turns[number + 1], row)
        for number, turn in enumerate(loop.turns[:-1])
    ]
    found, start = [], 0
    for number in range(len(loop.turns)):
        if number == len(joined) or not joined[number]:
            found.append(range(start, number + 1))
            start = number + 1
    alone = [run for run in found if _calls(loop.turns[run[-1]]) and run[-1] < len(joined)]
    return [part for run in found for part in ([range(turn, turn + 1) for turn in run] if run in alone else [run])]


def _own_tools(turn: Turn, after: Turn, row: Row) -> bool:
    """Whether every call is of a function that the request declared (others are the vendor's), and the next request declares the same."""
    if not turn.request or not after.request:
        return True
    tools, later = row.tools(turn.request), row.tools(after.request)
    functions = {tool.name for tool in tools if not tool.builtin}
    return all(call.name in functions for call in _calls(turn)) and [tool.name for tool in later] in ([], [tool.name for tool in tools])


def _only_tools(turn: Turn, before: Sequence[Atom], after: Sequence[Atom]) -> bool:
    """Whether between two requests lie only a reply and the results of its calls."""
    if [compared(atom) for atom in after[: len(before)]] != [compared(atom) for atom in before]:
        return False
    added = after[len(before) :]
    calls = [call.value for call in added if call.kind == "call"]
    results = [atom.value for atom in added if atom.kind == "result"]
    wanted = [(call.name, plain(call.arguments)) for call in _calls(turn)]
    alike = [(call.name, plain(call.arguments)) for call in calls] == wanted != []
    answered = [result.number for result in results] == [call.number for call in calls]
    return alike and answered and added[-1].role == "tool" and {atom.role for atom in added} == {"assistant", "tool"}


def replay(loop: Loop, row: Row, player: Player) -> Replayed:
    """Replay a loop."""
    said = histories_of(loop, row)
    requests = loop.requests
    declared = row.tools(requests[0]) if requests[0] else _made_up(loop)
    found = Replayed(theirs=[row.read(request) if request else history for request, history in zip(requests, said, strict=True)])
    player.load(loop.turns)
    found.runs = segments(loop, row, said)
    for run in found.runs:
        history = messages_of(said[run[0]], _writer(loop, found, run[0]))
        tools = row.tools(requests[run[0]]) or declared
        new = _run(loop, row, player, run, history, tools, Desk(said[-1]))
        replies = [message for message in new if isinstance(message, AIMessage)]
        if len(replies) != len(run):
            raise AssertionError(f"turns {run}: {len(replies)} replies")
        found.stored.update(zip(run, replies, strict=True))
    found.bodies = player.bodies
    found.ours = [row.read(body) for body in found.bodies]
    return found


def _made_up(loop: Loop) -> list[Declared]:
    return [Declared(name) for name in dict.fromkeys(call.name for turn in loop.turns for call in _calls(turn))]


def _run(
    loop: Loop, row: Row, player: Player, run: range, history: list[BaseMessage], tools: list[Declared], desk: Desk
) -> list[BaseMessage]:
    """One run of ours: over several turns with tools that answer, over one with tools that are only declared."""
    everything = [dict(tool.builtin) if tool.builtin else desk.tool(tool) for tool in tools]
    if len(run) > 1:
        model = row.model(player.address, loop, tools=everything, parallel=not desk.repeats, no_progress=None)
    else:
        model = row.model(player.address, loop)
        model = model.bind_tools(everything) if everything else model
    return player.ask(model, history, streamed=loop.turns[run[0]].streamed)


def _writer(loop: Loop, found: Replayed, before: int) -> Any:
    """Finds, among our stored messages, the one that says what the recorded client sent back."""
    left = [number for number in range(before) if number in found.stored]

    def written(atoms: list[Atom]) -> AIMessage | None:
        calls = [(atom.value.name, plain(atom.value.arguments)) for atom in atoms if atom.kind == "call"]
        text = "".join(atom.value for atom in atoms if atom.kind == "text").strip()
        for number in left:
            turn = loop.turns[number]
            same = [(call.name, plain(call.arguments)) for call in _calls(turn)] == calls
            if same and (calls or text == turn.expected["text"].strip()):
                left.remove(number)
                return found.stored[number]
        return None

    return written


def plain_requests(loop: Loop, row: Row, player: Player) -> Iterator[tuple[list[Atom], list[Atom]]]:
    """Of each turn, our request for the same history made of plain LangChain messages, and the recorded one."""
    asked = [turn for turn in loop.turns if turn.request and not turn.request.get("previous_response_id")]
    model = row.model(player.address, loop)
    for turn in asked:
        theirs = row.read(turn.request)
        player.load([turn])
        tools = [dict(tool.builtin) if tool.builtin else Desk(()).tool(tool) for tool in row.tools(turn.request)]
        player.ask(model.bind_tools(tools) if tools else model, messages_of(theirs, lambda atoms: None), streamed=turn.streamed)
        yield row.read(player.bodies[0]), theirs
