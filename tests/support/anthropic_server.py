"""A loopback server that speaks Anthropic's Messages API: strict about requests, scripted or thinking for itself in its replies.

    with AnthropicServer([Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3")]) as server:
        model = ChatAnthropic(model="any", base_url=server.url, api_key="key", tools=[add])

The script is as of `OpenAIServer`. A request that Anthropic refuses is refused and kept in `rejections`; so is thinking that this
server's model of the same name did not write, as a signature shows the vendor.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from tests.support.anthropic_wire import Asked, blocks_of, failure, reply_to
from tests.support.http_server import Exchange, HttpReply
from tests.support.script import Cut, Events, Failure, Reply, Turn
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.strict import Rejection
from tests.support.strict_anthropic import THOUGHTS, check_request, opaque

_PATH = "/v1/messages"


class AnthropicServer(ScriptedServer):
    """`strict=False` accepts any JSON body; `signed=False` any signature."""

    path = _PATH

    def __init__(self, script: Script = (), *, strict: bool = True, signed: bool = True) -> None:
        super().__init__(script)
        self._strict = strict
        self._signed: defaultdict[str, set[str]] = defaultdict(set)  # by the model that wrote it, which alone takes thoughts back; "": any
        self._checks_signatures = signed

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or Anthropic's `Rejection`."""
        _check_http(exchange)
        if not self._strict:
            body: dict[str, Any] = exchange.json
            return body
        return check_request(exchange.body, self._written_for(exchange.body) if self._checks_signatures else None)

    def _written_for(self, body: bytes) -> set[str]:
        """What the model of a request takes back."""
        try:
            model = str(json.loads(body)["model"])
        except (LookupError, TypeError, ValueError):
            model = ""
        return self._signed[""] | self._signed[model]

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in Anthropic's form."""
        asked = Asked(exchange.number, str(body.get("model")), bool(body.get("stream")))
        sent = reply.reply if isinstance(reply, Cut) else reply
        written = blocks_of(asked, sent) if isinstance(sent, Turn) else []
        if isinstance(reply, Events) and reply.whole:
            written = list(reply.whole.get("content", ()))
        for block in written:
            if (said := opaque(block)) is not None:
                self._signed[asked.model if block["type"] in THOUGHTS else ""].add(said)
        return reply_to(asked, reply)

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The rejection in Anthropic's form."""
        return failure(Failure(rejection.status, rejection.message))


def _check_http(exchange: Exchange) -> None:
    if (exchange.method, exchange.path.partition("?")[0]) != ("POST", _PATH):
        raise Rejection("Not Found", status=404)
    key = exchange.headers.get("x-api-key") or exchange.headers.get("authorization", "").removeprefix("Bearer ")
    if not key.strip():
        raise Rejection("x-api-key header is required", status=401)
    if not exchange.headers.get("anthropic-version"):
        raise Rejection("anthropic-version: header is required")
    if exchange.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Rejection("content-type must be application/json", status=415)
