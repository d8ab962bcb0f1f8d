"""Random trees of models that are given to each other as tools, and a human who decides about their calls."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools import Agent, Decision, PendingCall
from langchain_autotools.testing import ScriptedChatModel

KEY = "a key of the server's"


@dataclass
class Node:
    """A model of a tree: what it calls in each of its turns.

    Attributes:
        name: Its name, as a tool.
        turns: The calls of each turn: labels of acts, and models. All ids of calls are the same in all of them.
        is_agent: Whether it is given as an `Agent`.
    """

    name: str
    turns: list[list[str | Node]] = field(default_factory=list)
    is_agent: bool = False

    def labels(self) -> Iterator[str]:
        """The labels of all acts of the tree."""
        for one in (one for calls in self.turns for one in calls):
            yield from [one] if isinstance(one, str) else one.labels()


def tree(chance: random.Random, depth: int, name: str = "root") -> Node:
    """A random tree of this depth; its acts have labels of their own, which begin with `free` where nobody is asked."""
    node = Node(name, is_agent=chance.random() < 0.4)
    for turn in range(chance.choice([1, 1, 2])):
        node.turns.append([])
        for number in range(chance.randint(1, 2)):
            place = f"{name}_{turn}{number}"
            deeper = depth > 1 and chance.random() < 0.5
            act = f"{chance.choice(['free', 'asked', 'asked'])}_{place}"
            node.turns[-1].append(tree(chance, depth - 1, place) if deeper else act)
    return node


class Workshop:
    """One process in which a tree runs.

    Args:
        node: The tree.
        ran: Gets the label of each act that runs.
        spent: Gets the tokens of each reply, each another power of two; None: replies have no usage.
        fields: Fields of the outermost model.
    """

    def __init__(self, node: Node, ran: list[str], spent: list[int] | None = None, **fields: Any) -> None:
        self._ran = ran
        self._spent = spent
        self._lock = threading.Lock()
        self.model = self._model(node, **fields)

    def act(self, label: str) -> str:
        """Do something."""
        self._ran.append(label)
        return f"did {label}"

    def _model(self, node: Node, **fields: Any) -> Any:
        inner = {one.name: one for calls in node.turns for one in calls if isinstance(one, Node)}
        given: dict[str, Any] = {name: self._given(one) for name, one in inner.items()}

        def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
            turn = sum(isinstance(message, AIMessage) for message in messages)
            if turn == len(node.turns):
                return self._said(" / ".join([node.name, *(message.text for message in messages if message.type == "tool")]))
            return self._said("", [_call(number, one) for number, one in enumerate(node.turns[turn])])

        return ScriptedChatModel(
            tools={"act": self.act, **given}, replies=reply, requires_approval=_is_asked, no_progress=None, name=node.name, **fields
        )

    def _said(self, text: str, calls: Any = ()) -> AIMessage:
        if self._spent is None:
            return AIMessage(text, tool_calls=list(calls))
        with self._lock:
            tokens = 1 << len(self._spent)
            self._spent.append(tokens)
        return AIMessage(text, tool_calls=list(calls), usage_metadata={"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens})

    def _given(self, node: Node) -> Any:
        model = self._model(node)
        return Agent(model, system_prompt=f"You are {node.name}.") if node.is_agent else model


def _call(number: int, one: str | Node) -> Any:
    name, args = ("act", {"label": one}) if isinstance(one, str) else (one.name, {"question": f"Go, {one.name}."})
    return {"name": name, "args": args, "id": f"call_{number}"}


def _is_asked(call: Any) -> bool:
    return call.name == "act" and call.args["label"].startswith("asked")


def decided(call: PendingCall, kinds: Mapping[str, str]) -> Decision | None:
    """What the human decides about a call, which is an act; None where they do not."""
    label = call.args["label"]
    kind = kinds[label]
    if kind == "edit":
        return call.edit({"label": f"changed_{label}"})
    if kind == "reject":
        return call.reject(f"Not {label}.")
    if kind == "respond":
        return call.respond(f"answered {label}")
    return call.approve() if kind == "approve" else None
