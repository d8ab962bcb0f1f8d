"""A program that serves on loopback, which a test ends and begins again over one folder."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]


class ServedProgram:
    """The program.

    Args:
        arguments: What follows `python` on its command line; `{port}` stands for its port.
        folder: Where it runs.
        environment: What it finds in its environment, besides this checkout.

    Attributes:
        address: Where it serves.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, **environment: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        self.address = f"http://127.0.0.1:{port}"
        self._command = [sys.executable, *(argument.format(port=port) for argument in arguments)]
        self._environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self._process = subprocess.Popen(self._command, cwd=self._folder, env=self._environment)
        until(self.serves)

    def serves(self) -> bool:
        """Whether it answers."""
        assert self._process is not None and self._process.poll() is None, "the program has ended"
        try:
            return httpx.get(f"{self.address}/").status_code == 200
        except httpx.TransportError:
            return False

    def end(self, how: signal.Signals) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)


def until(holds: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.05)
