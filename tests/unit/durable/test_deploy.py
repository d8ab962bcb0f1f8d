"""The service of docs/howto/deploy.md behind the nginx that the page configures."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_autotools.durable import shutdown
from tests.support.asgi_server import AsgiServer
from tests.support.event_stream import EventStreamParser, Frame
from tests.support.http_server import Gate
from tests.support.nginx import nginx
from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY, fences
from tests.support.script import Turn
from tests.support.served_program import until

PAGE = REPOSITORY / "docs" / "howto" / "deploy.md"
ANN = ("ann", "secret")


def service() -> dict[str, Any]:
    """The names that the page defines, its worker's and its end aside."""
    names: dict[str, Any] = {"__name__": "page"}
    for text in [text for language, text in fences(PAGE) if language == "python" and not text.startswith("shutdown")]:
        exec(compile(text, PAGE.name, "exec"), names)
    return names


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A place in the vendor's reply, behind its first words."""
    made = Gate()
    yield made
    made.open()


@pytest.fixture
def addresses(gate: Gate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Where nginx serves, and where the service itself."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users").write_text("ann:{PLAIN}secret\nbob:{PLAIN}secret\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with OpenAIServer([Turn("One two three four.", characters=4, holds={3: gate})]) as vendor:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", vendor.url)
        with AsgiServer(service()["app"]) as server:
            (config,) = [text for language, text in fences(PAGE) if language == "nginx"]
            upstream = server.address.removeprefix("http://")
            changes = {"127.0.0.1:8000": upstream, "listen 8080": f"listen 127.0.0.1:{port}", "/etc/nginx/users": f"{tmp_path}/users"}
            for old, new in changes.items():
                assert config.count(old) == 1
                config = config.replace(old, new)
            try:
                with nginx(config, port, tmp_path) as address:
                    yield address, server.address
            finally:
                gate.open()
                shutdown()


def frames(response: httpx.Response) -> Iterator[Frame]:
    """The frames of a response, each as soon as its bytes are there."""
    parser = EventStreamParser()
    for piece in response.iter_bytes():
        yield from parser.feed(piece)


def test_events_pass_nginx_at_once_and_a_reader_that_was_cut_off_comes_back(addresses: tuple[str, str], gate: Gate) -> None:
    """The first words come while the vendor holds the rest; with `Last-Event-ID` nothing is missed or doubled; users have their own."""
    address, behind = addresses
    with httpx.Client(base_url=address, timeout=30) as client:
        assert client.post("/chats/c", params={"text": "Count."}).status_code == 401
        assert client.post("/chats/c", params={"text": "Count."}, auth=ANN, headers={"X-User": "bob"}).status_code == 202
        read: list[Frame] = []
        with client.stream("GET", "/chats/c", auth=ANN) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            for frame in frames(response):
                read.append(frame)
                if frame.event == "text":
                    break
        assert gate.reached.is_set() and not gate.opened.is_set()
        gate.open()
        with client.stream("GET", "/chats/c", auth=ANN, headers={"Last-Event-ID": read[-1].id}) as response:
            for frame in frames(response):
                read.append(frame)
                if frame.event == "run_end":
                    break
        assert "".join(frame.json["text"] for frame in read if frame.event == "text") == "One two three four."
        assert len({frame.id for frame in read}) == len(read) and read[0].event == "messages"

        bob = ("bob", "secret")
        assert client.get("/chats/c", auth=bob).status_code == client.get("/chats/other", auth=bob).status_code == 404
        assert client.post("/chats/c", params={"text": "Mine"}, auth=bob).status_code == 404
        assert client.get("/chats", auth=bob).json() == []
        until(lambda: client.get("/chats", auth=ANN).json() == [{"id": "c", "title": "Count.", "state": "idle"}])
        assert client.get("/metrics", auth=ANN).status_code == 403
        assert re.search(r"^autotools_runs_queued 0$", httpx.get(f"{behind}/metrics").text, re.MULTILINE)
