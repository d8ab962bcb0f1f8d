"""The classes of LangChain's packages that `init_chat_model` makes, with keys of nobody: needs the extra `named` beside `compat`.

A class whose package is not installed is skipped. Two ask a server when they are made: one that stands here.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from langchain_autotools import ToolsAndMessagesMixin, init_chat_model
from langchain_autotools.providers.langchain_classes import LANGCHAIN_CLASSES
from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore")]

KEY = "secret-of-nobody"
MADE_WITH: dict[str, dict[str, Any]] = {
    "azure_ai": {"endpoint": "https://nobody.services.ai.azure.com/openai/v1", "credential": KEY},
    "baseten": {"baseten_api_key": KEY},
    "bedrock_mantle_anthropic": {"api_key": KEY},
    "bedrock_mantle_openai": {"api_key": KEY},
    "google_anthropic_vertex": {"project": "nobody", "location": "us-east5"},
    "huggingface": {"backend": "endpoint", "huggingfacehub_api_token": KEY},
    "litellm": {"api_key": KEY},
    "meta": {"api_key": KEY},
    "perplexity": {"api_key": KEY},
    "upstage": {"api_key": KEY},
}
SHOWS_ITS_KEY = {"azure_ai"}
"""Classes whose own repr shows a key that they were given."""


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Watsonx(BaseHTTPRequestHandler):
    """IBM's own software as an installation has it: a project, and an answer after a tool call."""

    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    replies = ({"role": "assistant", "tool_calls": [call]}, {"role": "assistant", "content": "3"})

    def do_GET(self) -> None:
        """Answer about the project."""
        self._answer({"entity": {"storage": {"type": "local_git_storage"}}, "metadata": {"guid": "nobody"}, "resources": []})

    def do_POST(self) -> None:
        """Answer a chat."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = self.replies[any(one["role"] == "tool" for one in asked["messages"])]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self._answer({"id": "r", "model_id": asked["model_id"], "choices": [choice], "usage": usage})

    def _answer(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture
def watsonx(tmp_path: Path) -> Iterator[str]:
    """The address of IBM's software, which is asked over TLS only."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Watsonx)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(tmp_path / "server.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _certificate(path: Path) -> Path:
    """Write a certificate of this machine's, signed by itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    alone = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1))
    written = made.add_extension(alone, critical=False).sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(written + key.private_bytes(*form))
    return path


@pytest.fixture
def arguments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, Any]]]:
    """A function from a name to the arguments with which its class is made here."""
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches prices when it is imported
    with OpenAIServer(lambda exchange: Turn("hello")) as server:
        asking = {"nvidia": lambda: {"base_url": server.url, "api_key": f"nvapi-{KEY}"}, "ibm": lambda: _ibm(request)}
        yield lambda name: asking[name]() if name in asking else MADE_WITH.get(name, {})


def _ibm(request: pytest.FixtureRequest) -> dict[str, Any]:
    address = request.getfixturevalue("watsonx")
    project = {"project_id": "nobody", "instance_id": "openshift", "version": "5.1"}
    return {"url": address, "token": KEY, "verify": False, "validate_model": False, **project}


@pytest.mark.parametrize("name", LANGCHAIN_CLASSES)
def test_the_class_is_made_with_our_settings(name: str, arguments: Callable[[str], dict[str, Any]]) -> None:
    """By its name, the same class that LangChain's own function makes, with tools and settings of runs; it shows no key but its own way."""
    row = LANGCHAIN_CLASSES[name]
    if find_spec(row.module.partition(".")[0]) is None:
        pytest.skip(f"needs {row.package}")
    import langchain.chat_models as langchain_models

    model: Any = init_chat_model(f"{name}:some-model", tools=[add], max_turns=3, requires_approval=["add"], **arguments(name))
    theirs = langchain_models.init_chat_model(f"{name}:some-model", **arguments(name))
    assert isinstance(model, type(theirs)) and isinstance(model, ToolsAndMessagesMixin)
    assert (model.tools, model.max_turns, model.requires_approval) == ([add], 3, ["add"])
    assert model._identifying_params.items() >= theirs._identifying_params.items() or name == "huggingface"
    assert name in SHOWS_ITS_KEY or KEY not in repr(model)
    assert not isinstance(theirs, ToolsAndMessagesMixin)


def test_watsonx_runs_its_tools(arguments: Callable[[str], dict[str, Any]]) -> None:
    """IBM's own software asks for no login at IBM's cloud."""
    pytest.importorskip("langchain_ibm")
    model = init_chat_model("ibm:some-model", tools=[add], **arguments("ibm"))
    assert model.invoke("1 + 2?").text == "3"
