"""The local model server of this Python process: started on first use, shared, stopped with the program.

The server runs in a child process. Inside this one it would hold the interpreter lock while it loads the model (1.4 s measured) and while
it shuts down (30 s with a reply under way). It would make every forked child hang at its exit, and take the program with it if it crashed.
"""

import atexit
import http.client
import json
import logging
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from ...errors import AutoToolsError, ConfigurationError

logger = logging.getLogger("langchain_autotools.local")

_PROGRAM = Path(__file__).with_name("serve.py")
_LOG_PREFIX = re.compile(r"^[\d.]+ [A-Z] ")


class LocalServerError(AutoToolsError):
    """Raised when the local model server does not start. The message contains its output."""


@dataclass(frozen=True)
class ServerSettings:
    """The settings of one server.

    Attributes:
        model_path: The GGUF file.
        model_name: The name that the server reports.
        chat_template: The Jinja text of the chat template; None for the one inside the file.
        context_size: Tokens that fit into one conversation.
        threads: Threads that compute.
        repeat_penalty: The penalty on tokens that occurred just before; 1.0 for none.
        gpu_layers: Layers to put on a graphics card, where the installed server can.
    """

    model_path: str
    model_name: str
    chat_template: str | None
    context_size: int
    threads: int
    repeat_penalty: float = 1.0
    gpu_layers: int = 0


class LocalServer:
    """A running server. It ends with its process, with this process, or by `close()`.

    Args:
        settings: The server's settings.
        start_timeout: Seconds until it must answer.

    Attributes:
        base_url: The base URL of its OpenAI-compatible interface, e.g. `http://127.0.0.1:41234/v1`.
        api_key: The random key that every request must carry.

    Raises:
        LocalServerError: It did not start, or not in time.
    """

    def __init__(self, settings: ServerSettings, start_timeout: float) -> None:
        self.settings = settings
        self.api_key = secrets.token_urlsafe(32)
        self._said: list[str] = []
        self._readers: list[threading.Thread] = []
        self._process = _launch()
        try:
            self.base_url = self._start(start_timeout) + "/v1"
        except BaseException:
            self.close()
            raise
        logger.debug("local model server: process %d at %s", self._process.pid, self.base_url)

    @property
    def is_running(self) -> bool:
        """Whether the server process is alive."""
        return self._process.poll() is None

    def close(self) -> None:
        """Stop the server immediately. A reply in progress breaks off."""
        # Nothing of it needs an orderly end: it only reads its files.
        self._process.kill()
        self._process.wait()
        for thread in self._readers:
            thread.join(5)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def forget(self) -> None:
        """Drop a server that belongs to the parent process of a fork."""
        # The server ends when the last holder of this pipe is gone: that must not be us.
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _start(self, timeout: float) -> str:
        """Send the settings, then wait for the address and for `/health`."""
        deadline = time.monotonic() + timeout
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None and stdout is not None and stderr is not None
        first: list[bytes] = []
        reader = threading.Thread(target=lambda: first.append(stdout.readline()), daemon=True)
        listener = threading.Thread(target=self._listen, args=(stderr,), daemon=True)
        for thread in (reader, listener):
            thread.start()
            self._readers.append(thread)
        try:
            stdin.write(json.dumps({**asdict(self.settings), "api_key": self.api_key, "sys_path": sys.path}).encode() + b"\n")
            stdin.flush()
        except OSError:  # it is gone already: what it said is told below
            pass
        reader.join(timeout)
        if reader.is_alive():
            raise LocalServerError(f"The local model server did not start within {timeout:g} s (start_timeout) {self._words()}".strip())
        answer = json.loads(b"".join(first).decode(errors="replace") or "{}")
        if "address" not in answer:
            listener.join(5)  # its words come through another pipe
            raise LocalServerError(f"The local model server did not start: {self._words() or answer.get('error') or 'it ended at once'}")
        address = str(answer["address"])
        while not _is_healthy(address):
            if time.monotonic() > deadline or not self.is_running:
                raise LocalServerError(f"The local model server at {address} is not healthy after {timeout:g} s (start_timeout)")
            time.sleep(0.05)
        return address

    def _listen(self, stderr: IO[bytes]) -> None:
        for raw in stderr:
            line = _LOG_PREFIX.sub("", raw.decode(errors="replace").strip())
            logger.debug("local model server says: %s", line)
            if len(self._said) < 20:
                self._said.append(line)

    def _words(self) -> str:
        # The first lines name the cause, later ones repeat what failed because of it.
        return "; ".join(list(dict.fromkeys(self._said))[:3])


_lock = threading.Lock()
_server: LocalServer | None = None
_inherited: list[LocalServer] = []


def require_server() -> None:
    """Raise if the server program is not installed.

    Raises:
        ConfigurationError: It is not; the text says how to install it.
    """
    if find_spec("xllamacpp") is None:
        raise ConfigurationError("The local model is not installed: it needs the extra `local` (from a checkout: pip install '.[local]')")


def shared_server(settings: ServerSettings, start_timeout: float) -> LocalServer:
    """Return the server of this process, started if necessary.

    Args:
        settings: The server's settings.
        start_timeout: Seconds until it must answer.

    Raises:
        ConfigurationError: It runs, with other settings; or its program is not installed.
        LocalServerError: It did not start.
    """
    global _server
    with _lock:
        if _server is not None and _server.is_running:
            running = vars(_server.settings)
            differing = [name for name, value in vars(settings).items() if running[name] != value]
            if differing:
                raise ConfigurationError(
                    f"This process already runs a local model with another {' and '.join(differing)}; there is one server "
                    "per process: use the same settings, or call close() first"
                )
            return _server
        if _server is not None:
            _server.close()
            _server = None
        require_server()
        _server = LocalServer(settings, start_timeout)
        return _server


def close_server() -> None:
    """Stop the server of this process, if it runs. The next use starts a new one."""
    global _server
    with _lock:
        if _server is not None:
            _server.close()
        _server = None


def _after_fork() -> None:
    """Reset lock and server in a forked child process."""
    global _lock, _server
    _lock = threading.Lock()
    if _server is not None:
        _server.forget()
        _inherited.append(_server)  # kept, so that its process handle is not finalised here
    _server = None


atexit.register(close_server)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _launch() -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise LocalServerError("The local model server needs a Python interpreter to run in, and sys.executable names none")
    return subprocess.Popen(
        [sys.executable, "-P", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Waiting threads that spin take the cores that compute: 1-4 tokens/s in place of 50 on two busy cores.
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        start_new_session=True,  # a Ctrl-C at the terminal reaches our process only
    )


def _is_healthy(address: str) -> bool:
    # http.client, because it knows no proxies: this connection never leaves the machine.
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=5)
    try:
        connection.request("GET", "/health")
        with connection.getresponse() as response:
            return response.status == 200
    except OSError:
        return False
    finally:
        connection.close()
