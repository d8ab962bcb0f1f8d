"""A loopback server that speaks Bedrock's two wires: Converse with ConverseStream, and Anthropic's Messages in InvokeModel.

    with BedrockServer([Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3")]) as server:
        model = ChatBedrockConverse(model="anthropic.claude-any", endpoint_url=server.url, region_name="us-east-1", ...)

The script is as of `OpenAIServer`. A request that Bedrock refuses is refused and kept in `rejections`.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from tests.support import anthropic_wire, converse_wire
from tests.support.aws_event_stream import CONTENT_TYPE, event_frame, exception_frame
from tests.support.http_server import Exchange, HttpReply, Part
from tests.support.replies import plain_reply
from tests.support.script import Cut, Failure, Raw, Reply, Turn
from tests.support.scripted_server import ScriptedServer
from tests.support.strict import Rejection
from tests.support.strict_anthropic import check_request as check_anthropic
from tests.support.strict_converse import check_request as check_converse

_PLACE = re.compile(r"/model/([^/]+)/(converse|converse-stream|invoke|invoke-with-response-stream)")
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/[^/]+/bedrock/aws4_request, SignedHeaders=\S+, Signature=[0-9a-f]{64}")
_VERSION = re.compile(r"bedrock-2023-05-31|\d{4}-\d\d-\d\d")
_DATA = re.compile(rb"data: (.*)\n\n")


class BedrockServer(ScriptedServer):
    """The wire of a request is that of its path."""

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The parsed bodies."""
        return [exchange.json for exchange in list(self.exchanges)]

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or Bedrock's `Rejection`."""
        model, operation = _place(exchange)
        if operation.startswith("converse"):
            return check_converse(exchange.body)
        return _check_invoke(exchange, model)

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in the form that was asked for."""
        if isinstance(reply, Raw | Failure | Cut):
            return plain_reply(reply, converse_wire.failure, lambda inner: self.encode(exchange, body, inner))
        assert isinstance(reply, Turn)
        model, operation = _place(exchange)
        if operation.startswith("converse"):
            form = converse_wire.stream if operation == "converse-stream" else converse_wire.whole
            return form(exchange.number, reply)
        asked = anthropic_wire.Asked(exchange.number, model, operation != "invoke")
        said = anthropic_wire.reply_to(asked, reply)
        return _in_frames(said, reply) if asked.stream else _counted(said, reply)

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The rejection in AWS's form."""
        return converse_wire.failure(Failure(rejection.status, rejection.message))


def broken_stream(number: int, turn: Turn, kind: str, message: str) -> Raw:
    """A ConverseStream whose error comes as its last event, after the text: AWS's answer has been 200 already."""
    parts = list(converse_wire.stream(number, turn).parts)
    return Raw([*parts[:-2], exception_frame(kind, message)], CONTENT_TYPE)


def _place(exchange: Exchange) -> tuple[str, str]:
    """The model and the operation of a request, which is signed.

    https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
    """
    found = _PLACE.fullmatch(exchange.path)
    if exchange.method != "POST" or found is None:
        raise Rejection(f"Unknown operation: {exchange.method} {exchange.path}", status=404)
    if not _SIGNED.fullmatch(exchange.headers.get("authorization", "")):
        raise Rejection("Missing Authentication Token", status=403)
    return unquote(found[1]), found[2]


def _check_invoke(exchange: Exchange, model: str) -> dict[str, Any]:
    """The parsed body as Anthropic's, where model and stream are in the path and the version and betas in the body.

    The version is a name of Bedrock's own; newer releases of Anthropic's client send the date of Anthropic's API.
    https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
    """
    body = exchange.json
    if not _VERSION.fullmatch(body.pop("anthropic_version", "")):
        raise Rejection("anthropic_version: Field required")
    body.pop("anthropic_beta", None)
    for key in ("model", "stream"):
        if key in body:
            raise Rejection(f"{key}: Extra inputs are not permitted")
    return check_anthropic(json.dumps({"model": model, **body}, ensure_ascii=False).encode())


def _counted(reply: HttpReply, turn: Turn) -> HttpReply:
    """A whole reply with the tokens as AWS has counted them."""
    used = anthropic_wire.usage_of(turn)
    counted = {f"x-amzn-bedrock-{kind}-token-count": str(used[f"{kind}_tokens"]) for kind in ("input", "output")}
    return replace(reply, headers={**reply.headers, **counted})


def _in_frames(reply: HttpReply, turn: Turn) -> HttpReply:
    """A reply's server-sent events, each as the bytes of a `chunk` event: API_runtime_InvokeModelWithResponseStream.html.

    The last one has the tokens as AWS has counted them.
    """
    parts: list[Part] = []
    for part in reply.parts:
        if isinstance(part, bytes):
            events = [json.loads(data) for data in _DATA.findall(part)]
            parts.append(b"".join(_chunk(event, turn) for event in events if event["type"] != "ping"))
        else:
            parts.append(part)
    return replace(reply, parts=parts, headers={**reply.headers, "content-type": CONTENT_TYPE})


def _chunk(event: dict[str, Any], turn: Turn) -> bytes:
    if event["type"] == "message_stop":
        used = anthropic_wire.usage_of(turn)
        counted = {"inputTokenCount": used["input_tokens"], "outputTokenCount": used["output_tokens"]}
        metrics = {**counted, "invocationLatency": 1, "firstByteLatency": 1}
        event = {**event, "amazon-bedrock-invocationMetrics": metrics}
    return event_frame("chunk", {"bytes": base64.b64encode(json.dumps(event, ensure_ascii=False).encode()).decode()})
