"""The example of a chat page, as a program that is started and killed, and as it is seen in a browser."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.browser.visited import SECONDS, Visited
from tests.support.openai_server import OpenAIServer

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "chat_app.py"
MAIL = {"to": "Anna", "text": "It is 21 °C in Rome. Bring a light jacket."}
WATCH = """
import socket

connect = socket.socket.connect

def watched(self, address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        with open("left.txt", "a") as file:
            print(address, file=file)
    return connect(self, address)

socket.socket.connect = watched
"""
"""Notes where the program goes, beyond this machine."""


class Program:
    """The example, as `python examples/chat_app.py openai:gpt-5` in a folder of its own.

    Args:
        folder: The folder, where its database lies.
        vendor: The server that its model asks.
    """

    def __init__(self, folder: Path, vendor: OpenAIServer) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}/"
        self.folder, self.vendor = folder, vendor
        (folder / "sitecustomize.py").write_text(WATCH)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it serves."""
        paths = os.pathsep.join([str(self.folder), str(EXAMPLE.parents[1])])
        own = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": self.vendor.url, "GRADIO_SERVER_PORT": str(self._port), "PYTHONPATH": paths}
        with (self.folder / "log.txt").open("ab") as log:
            command = [sys.executable, str(EXAMPLE), "openai:gpt-5"]
            self._process = subprocess.Popen(command, cwd=self.folder, env={**os.environ, **own}, stdout=log, stderr=log)
        until = time.monotonic() + 120
        while not self._serves():
            assert self._process.poll() is None and time.monotonic() < until, (self.folder / "log.txt").read_text()
            time.sleep(0.2)

    def _serves(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(SECONDS)


class Chat(Visited):
    """A conversation, opened in the browser.

    Args:
        page: The browser's page.
        program: What serves it.
    """

    def __init__(self, page: Any, program: Program) -> None:
        super().__init__(page, str(page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'")))
        self.program = program

    def open(self, conversation: str) -> None:
        """Load the page of a conversation."""
        self.page.goto(f"{self.program.address}?chat={conversation}")
        self.can_send()

    def can_send(self) -> None:
        """Nothing goes on any more."""
        self.page.locator("button.submit-button").wait_for(timeout=SECONDS * 1000)
        self.page.locator("button.stop-button").wait_for(state="detached", timeout=SECONDS * 1000)

    def say(self, text: str) -> None:
        """Type a message, and Enter."""
        self.page.get_by_placeholder("Message").fill(text)
        self.page.get_by_placeholder("Message").press("Enter")

    @property
    def unread(self) -> Any:
        """What waits to be read."""
        return self.page.get_by_label("Waiting to be read")

    def ask(self, text: str, *turns: Any) -> None:
        """Send a message, which the model answers with these turns."""
        self.program.vendor.extend(turns)
        self.page.get_by_placeholder("Message").fill(text)
        self.page.locator("button.submit-button").click()

    def reads(self, *texts: str) -> None:
        """These texts come to be part of what is said."""
        for text in texts:
            self.page.get_by_label("chatbot conversation").get_by_text(text).last.wait_for(timeout=SECONDS * 1000)

    @property
    def approve(self) -> Any:
        """The buttons that let calls run."""
        return self.page.get_by_role("button", name="Approve")

    def refuses(self, text: str) -> None:
        """This comes beside the arguments that wait to be approved, and they are there as they were written."""
        self.page.wait_for_function(
            "text => [...document.querySelectorAll('.refused textarea')].some(one => one.value.includes(text))", arg=text
        )
        assert self.approve.count() == 1

    @property
    def said(self) -> str:
        """What is said, as it is to be read."""
        return str(self.page.get_by_label("chatbot conversation").inner_text())

    def write(self, old: str, new: str) -> None:
        """Replace a text of the arguments that wait to be approved."""
        editor = self.page.locator(".cm-content")
        text = "\n".join(editor.locator(".cm-line").all_inner_texts())
        assert old in text
        editor.fill(text.replace(old, new))
