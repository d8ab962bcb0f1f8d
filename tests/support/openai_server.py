"""A loopback server that speaks OpenAI's chat completions: strict about requests, scripted or thinking for itself in its replies.

    with OpenAIServer([Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[add])

The script is a list of replies (script.py) or a function from the request to a reply, such as `SemanticOpenAI()`. One script serves
streamed and whole requests. A request that OpenAI refuses is refused, uses up no reply and is kept in `rejections`. Keys that OpenAI does
not know (a reasoning text, a call's signature) are accepted back once this server has sent them, as the servers that send them do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.http_server import Exchange, HttpReply
from tests.support.openai_wire import Asked, failure, reply_to
from tests.support.script import Cut, Failure, Reply, Turn
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.strict import Rejection, Rules
from tests.support.strict_openai import check_request

__all__ = ["OpenAIServer", "Script"]


class OpenAIServer(ScriptedServer):
    """`rules=None` accepts any JSON body."""

    path = "/v1/chat/completions"

    def __init__(self, script: Script = (), *, rules: Rules | None = Rules()) -> None:  # noqa: B008 - frozen
        super().__init__(script)
        self._sent_message_keys: set[str] = set()
        self._sent_call_keys: set[str] = set()
        self.rules = rules

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return f"{self.address}/v1"

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or OpenAI's `Rejection`."""
        self.check_place(exchange)
        kind = exchange.headers.get("content-type", "")
        if kind.partition(";")[0].strip() != "application/json":
            raise Rejection(f"Unsupported Media Type: '{kind}'. This API method only accepts 'application/json' requests.", status=415)
        if self.rules is None:
            body: dict[str, Any] = exchange.json
            return body
        return self.check_body(exchange, self.rules)

    def check_place(self, exchange: Exchange) -> None:
        """Refuse another path, and who has no key."""
        if (exchange.method, exchange.path.partition("?")[0]) != ("POST", self.path):
            raise Rejection(f"Invalid URL ({exchange.method} {exchange.path})", status=404)
        if not exchange.headers.get("authorization", "").removeprefix("Bearer ").strip():
            raise Rejection("You didn't provide an API key.", status=401)

    def check_body(self, exchange: Exchange, rules: Rules) -> dict[str, Any]:
        """The parsed body, if the wire's rules take it."""
        return check_request(exchange.body, self._widened(rules))

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in OpenAI's form."""
        self._note_sent(reply.reply if isinstance(reply, Cut) else reply)
        return reply_to(Asked.by(exchange.number, body), reply)

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The rejection in OpenAI's form."""
        return failure(Failure(rejection.status, rejection.message, "invalid_request_error", rejection.code, rejection.param))

    def _widened(self, rules: Rules) -> Rules:
        """The rules, and the keys of its own that this server has sent."""
        messages, calls = {*rules.message_keys, *self._sent_message_keys}, {*rules.call_keys, *self._sent_call_keys}
        return replace(rules, message_keys=messages, call_keys=calls)

    def _note_sent(self, reply: Reply) -> None:
        if isinstance(reply, Turn):
            self._sent_message_keys.update(["reasoning_content"] if reply.reasoning else [])
            self._sent_call_keys.update(key for call in reply.calls for key in call.extra)
