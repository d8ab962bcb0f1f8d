"""Small weights from every source: fake packages, a fake hub, an empty cache."""

import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from langchain_autotools.providers.local.weights import MODEL_PATH_VARIABLE, HubFile, KnownModel

REVISION = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS = b"GGUF" + bytes(range(256)) * 40


class FakeHub(ThreadingHTTPServer):
    """A hub with one file, over HTTP on loopback: `reported` is the hash it states, `content` what it sends."""

    daemon_threads = True

    def __init__(self) -> None:
        self.content = WEIGHTS
        self.reported = hashlib.sha256(WEIGHTS).hexdigest()
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), _HubHandler)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class _HubHandler(BaseHTTPRequestHandler):
    server: FakeHub

    def log_message(self, *_args: object) -> None:
        """Keep silent."""

    def do_POST(self) -> None:
        """The hub's question for the facts of some files."""
        wanted = unquote(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.requests.append(self.path)
        size = len(self.server.content)
        large = {"oid": self.server.reported, "size": size, "pointerSize": 135}
        entry = {"type": "file", "path": "model.gguf", "size": size, "oid": "0" * 40, "lfs": large}
        self._answer(json.dumps([entry] if "model.gguf" in wanted else []).encode(), {"Content-Type": "application/json"})

    def do_HEAD(self) -> None:
        """The facts of the file, in headers."""
        self._file()

    def do_GET(self) -> None:
        """The file."""
        self._file()

    def _file(self) -> None:
        self.server.requests.append(self.path)
        headers = {"X-Repo-Commit": REVISION, "ETag": f'"{self.server.reported}"', "X-Linked-Etag": f'"{self.server.reported}"'}
        self._answer(self.server.content, {**headers, "X-Linked-Size": str(len(self.server.content))})

    def _answer(self, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """A hub that runs for one test."""
    server = FakeHub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def model(hub: FakeHub, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """A model of 10 KB: a hub has it, nothing is cached, no variable names a file."""
    monkeypatch.delenv(MODEL_PATH_VARIABLE, raising=False)
    return KnownModel(
        name="tiny",
        file_name="tiny.gguf",
        size=len(WEIGHTS),
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        hub=HubFile("owner/tiny", REVISION, "model.gguf", endpoint=hub.url),
    )


@pytest.fixture
def install_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs bytes as the three packages; whoever imports one of them is told off."""
    site = tmp_path / "site-packages"

    def install(content: bytes = WEIGHTS, parts: tuple[int, ...] = (1, 2, 3)) -> None:
        third = len(content) // 3
        pieces = {1: content[:third], 2: content[third : 2 * third], 3: content[2 * third :]}
        for number in parts:
            package = site / f"tiny_part{number}"
            (package / "data").mkdir(parents=True)
            (package / "__init__.py").write_text("raise AssertionError('data from strangers was imported')")
            (package / "data" / f"part{number}.bin").write_bytes(pieces[number])
            info = site / f"tiny_part{number}-0.9.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 0.9.0\n")
            (info / "RECORD").write_text(f"tiny_part{number}/__init__.py,,\ntiny_part{number}/data/part{number}.bin,,\n")
        monkeypatch.syspath_prepend(str(site))
        assert str(site) in sys.path

    return install


@pytest.fixture
def fake_server_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`import xllamacpp` finds the stand-in; whatever server the test leaves behind is stopped."""
    from langchain_autotools.providers.local.server import close_server

    monkeypatch.syspath_prepend(str(Path(__file__).parent / "fake"))
    close_server()
    yield
    close_server()


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    """A file that passes for weights."""
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF")
    return path
