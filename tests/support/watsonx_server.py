"""A loopback server that speaks watsonx.ai as an installation of IBM's software does: over TLS, with a certificate of its own.

    with WatsonxServer([Turn("Hi.")]) as server:
        place = {"url": server.url, "project_id": "any", "instance_id": "openshift", "version": "5.1", "verify": False}
        model = ChatWatsonx(model_id="any", token="key", **place)

https://cloud.ibm.com/apidocs/watsonx-ai#text-chat
"""

from __future__ import annotations

import contextlib
import datetime
import json
import socket
import ssl
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.http_server import Exchange, HttpReply
from tests.support.openai_server import OpenAIServer
from tests.support.script import Reply
from tests.support.strict import Rejection, Rules
from tests.support.strict_openai import check_request

__all__ = ["WatsonxServer"]

_STREAM = "/ml/v1/text/chat_stream"
_PROJECT = {"entity": {"storage": {"type": "local_git_storage"}}}


class WatsonxServer(OpenAIServer):
    """Chat completions at IBM's two places; the client asks about its project, too."""

    path = "/ml/v1/text/chat"

    @property
    def url(self) -> str:
        """`https://127.0.0.1:<port>`."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The parsed bodies of the replies that were asked for."""
        return [exchange.json for exchange in list(self.exchanges) if exchange.method == "POST"]

    def check_place(self, exchange: Exchange) -> None:
        """Refuse another path, and who has no token."""
        if exchange.path.partition("?")[0] == _STREAM:
            exchange = replace(exchange, path=self.path)
        super().check_place(exchange)

    def check_body(self, exchange: Exchange, rules: Rules) -> dict[str, Any]:
        """The body in OpenAI's words, as far as it is messages and tools: the rest is IBM's own."""
        body = exchange.json
        if not {"model_id", "project_id"} <= body.keys():
            raise Rejection("Missing required fields: model_id, project_id")
        shared = {"model": body["model_id"], **{key: body[key] for key in ("messages", "tools") if key in body}}
        check_request(json.dumps(shared).encode(), rules)
        return {**shared, "stream": exchange.path.partition("?")[0] == _STREAM, "stream_options": {"include_usage": True}}

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in OpenAI's form; a stream just ends."""
        said = super().encode(exchange, body, reply)
        return replace(said, parts=[part for part in said.parts if part != b"data: [DONE]\n\n"])

    def _reply(self, exchange: Exchange) -> HttpReply:
        if exchange.method == "GET":
            return HttpReply([json.dumps(_PROJECT).encode()], headers={"content-type": "application/json"}, framing="length")
        return super()._reply(exchange)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the client is gone
            secured = _tls().wrap_socket(connection, server_side=True)
            with self._lock:
                self._open.remove(connection)
                self._open.add(secured)
            super()._serve(secured)


@cache
def _tls() -> ssl.SSLContext:
    """What a server needs for TLS: a certificate of this machine's that it signed itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        path = Path(folder, "server.pem")
        path.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(form[0]) + key.private_bytes(*form))
        context.load_cert_chain(path)
    return context
