"""What a fake model says: replies in no vendor's format. Each wire's encoder turns them into its own events and bodies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.http_server import Gate, Part, Pause


@dataclass(frozen=True)
class Call:
    """A tool call. `args` as text is sent as it is, broken JSON included; `id=None` lets the server make one."""

    name: str
    args: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def raw(self) -> str:
        """The arguments as the model writes them."""
        return self.args if isinstance(self.args, str) else json.dumps(self.args, ensure_ascii=False)


@dataclass(frozen=True)
class Turn:
    """One whole reply of the model. `style` names how its calls are cut (wire_styles.py); `holds` come before the n-th stream event;
    `items` are further output items, which the Responses API alone has."""

    text: str = ""
    calls: Sequence[Call] = ()
    finish: str | None = None
    usage: tuple[int, int] = (11, 7)
    usage_details: Mapping[str, int] = field(default_factory=dict)
    reasoning: str = ""
    refusal: str = ""
    style: str = "standard"
    characters: int = 6
    items: Sequence[Mapping[str, Any]] = ()
    holds: Mapping[int, Gate | Pause] = field(default_factory=dict)


@dataclass(frozen=True)
class Events:
    """Raw stream events (the data of each, gates between them) and the whole body that says the same, if there is one."""

    events: Sequence[Mapping[str, Any] | Gate | Pause]
    whole: Mapping[str, Any] | None = None
    done: bool = True


@dataclass(frozen=True)
class Raw:
    """A body in given pieces, whatever was asked for."""

    pieces: Sequence[Part]
    content_type: str = "text/event-stream"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: Literal["chunked", "length", "close"] = "chunked"


@dataclass(frozen=True)
class Failure:
    """An HTTP error."""

    status: int = 500
    message: str = "The server had an error while processing your request."
    type: str = "server_error"
    code: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """Another reply that ends after this many bytes of its body.

    `drop`: the connection is torn down, which HTTP notices; else the body just ends there, as if it were whole.
    """

    reply: Turn | Events | Raw
    after: int
    drop: bool = True


@dataclass(frozen=True)
class Early(Cut):
    """Another reply whose stream ends with the first event that says `text` (or just before it), as if that were its end."""

    after: int = 0
    drop: bool = False
    text: str = ""
    before: bool = False


Reply = Turn | Events | Raw | Failure | Cut
