"""Random ends of a run: failures of the server, streams that break, replies that must not be acted on, callers that leave."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.laws.stories import Planned, Said, good_calls, replies, spoken
from tests.support.http_server import Exchange
from tests.support.openai_wire import Asked, chunk_of
from tests.support.script import Cut, Events, Failure


@dataclass(frozen=True)
class Breaks:
    """A reply that is cut after a share of its bytes. `drop`: the connection is torn down, else the body just ends."""

    said: Said
    share: float
    drop: bool

    def reply(self, exchange: Exchange) -> Cut:
        """The reply in the form that was asked for."""
        whole = self.said.reply(exchange)
        streamed = exchange.json.get("stream")
        size = sum(len(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()) + 8 for event in whole.events)
        size = size + 14 if streamed else len(json.dumps(whole.whole, ensure_ascii=False, indent=2).encode())
        return Cut(whole, int(size * self.share), self.drop)


@dataclass(frozen=True)
class FailsInside:
    """A reply that begins well and then is an error."""

    text: str
    error: Any
    calls: Sequence[Planned] = ()

    def reply(self, exchange: Exchange) -> Events:
        """The reply, whatever was asked for."""
        asked = Asked.by(exchange.number, exchange.json)
        begun = Said(self.text, self.calls).reply(exchange).events[: 2 + len(self.calls)]
        return Events([*begun, {"error": self.error}, chunk_of(asked, {}, "stop")], {"error": self.error})


_ERRORS = st.sampled_from(
    [
        {"message": "The server is overloaded.", "type": "server_error", "code": None},
        {"message": "Slow down.", "code": 429},
        {"message": "Too long.", "code": "context_length_exceeded"},
        "It broke.",
    ]
)
http_failures = st.sampled_from([400, 401, 404, 408, 429, 500, 503]).map(Failure)
inner_failures = st.builds(FailsInside, spoken, _ERRORS, st.lists(good_calls(), max_size=1))
failures: st.SearchStrategy[Any] = st.one_of(http_failures, inner_failures)


@st.composite
def cuts(draw: st.DrawFn) -> Breaks:
    """Replies with calls that are cut at any byte."""
    return Breaks(draw(replies()), draw(st.floats(0, 0.999)), draw(st.booleans()))


@st.composite
def stopped(draw: st.DrawFn) -> Said:
    """Replies with calls whose finish reason forbids them."""
    return replace(draw(replies()), finish=draw(st.sampled_from(["length", "content_filter"])))
