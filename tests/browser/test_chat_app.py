"""examples/chat_app.py in a real browser, its server a process that is killed. SCREENSHOTS=folder keeps a picture of each state."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.visited import SECONDS, Visited
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Failure, Turn

pytest.importorskip("gradio", reason="the example needs its extra")
pytestmark = pytest.mark.browser

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


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The example, running; nothing that it does leaves this machine."""
    with OpenAIServer() as vendor:
        program = Program(tmp_path_factory.mktemp("chats"), vendor)
        program.start()
        yield program
        program.kill()
        assert not (program.folder / "left.txt").exists(), (program.folder / "left.txt").read_text()
        assert (vendor.rejections, vendor.left) == ([], 0)


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


@pytest.fixture(params=["light"])
def chat(request: pytest.FixtureRequest, browser: Any, program: Program) -> Iterator[Chat]:
    """The page in the browser. All that it loads comes from the program, and its scripts make no errors."""
    context = browser.new_context(viewport={"width": 1000, "height": 720}, color_scheme=request.param)
    page = context.new_page()
    loaded, errors = [], []
    context.on("response", lambda one: loaded.append(one.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    chat = Chat(page, program)
    chat.open(re.sub(r"\W+", " ", request.node.name.removeprefix("test_").replace("_", " ")).strip())
    yield chat
    context.close()
    assert errors == []
    assert {url.startswith((program.address, "data:", "blob:")) for url in loaded} == {True}


@pytest.mark.parametrize("chat", ["light", "dark"], indirect=True)
def test_a_run_is_seen_while_it_happens(chat: Chat) -> None:
    """Reasoning and text while they are written, the call while it is written and while it runs, its result, the answer."""
    chat.look("1_empty")
    gates = [Gate() for _ in range(4)]
    holds = {2: gates[0], 4: gates[1], 8: gates[2]}
    looks = Turn(
        "Let me look that up.", [Call("get_temperature", {"city": "Rome"})], reasoning="A tool knows this.", characters=9, holds=holds
    )
    answers = Turn("It is **21 °C** in Rome.\n\n- A light jacket will do.", holds={4: gates[3]})
    chat.ask("How warm is it in Rome?", looks, answers)
    chat.reads("How warm is it in Rome?", "Reasoning", "A tool kn")
    assert "Let me" not in chat.said
    chat.page.locator("button.stop-button").wait_for(timeout=SECONDS * 1000)
    chat.look("2_reasoning")
    gates[0].open()
    chat.reads("A tool knows this.", "Let me lo")
    chat.look("3_text")
    gates[1].open()
    chat.reads("Let me look that up.", "get_temperature", "is being written")
    chat.look("4_call_written")
    gates[2].open()
    chat.reads("asking the station (1 of 2)", '"city": "Rome"')
    chat.look("5_call_runs")
    chat.reads("21 °C", "It is 21 °C")
    assert "jacket" not in chat.said
    chat.look("6_answer_begins")
    gates[3].open()
    chat.reads("A light jacket will do.")
    chat.can_send()
    chat.page.get_by_role("button", name="get_temperature").click()
    chat.reads('"city": "Rome"')
    chat.look("7_answered")


@pytest.mark.parametrize(
    ("presses", "sent", "told"), [("Approve", "Anna", "Sent to Anna."), ("Approve", "Ben", "Sent to Ben."), ("Reject", "Anna", "denied")]
)
def test_a_call_waits_for_the_user(chat: Chat, presses: str, sent: str, told: str) -> None:
    """He approves it, as it is or with other arguments, or rejects it; it keeps its panel."""
    chat.ask("Mail Anna how warm it is.", Turn("I have a mail ready.", [Call("send_mail", MAIL)]), Turn("That is settled."))
    chat.approve.wait_for(timeout=SECONDS * 1000)
    chat.reads("waits for you")
    chat.can_send()
    chat.look("8_approval")
    chat.page.reload()
    chat.approve.wait_for(timeout=SECONDS * 1000)
    if sent != "Anna":
        chat.write('"Anna"', "Ben")
        chat.press("Approve")
        chat.page.get_by_text("Expecting").wait_for(timeout=SECONDS * 1000)
        chat.look("9_no_json")
        chat.write("Ben", '"Ben"')
    chat.press(presses)
    chat.reads(told, "That is settled.")
    chat.approve.wait_for(state="hidden", timeout=SECONDS * 1000)
    chat.look(f"10_{presses}_{sent}".lower())
    assert chat.said.count("send_mail") == 1
    assert told in chat.program.vendor.messages[-1][-1]["content"]


def test_each_call_is_decided_by_itself(chat: Chat) -> None:
    """The other one waits on."""
    both = [Call("send_mail", MAIL), Call("send_mail", {"to": "Ben", "text": "Hi."})]
    chat.ask("Mail them.", Turn(calls=both), Turn("One is sent."))
    chat.approve.nth(1).wait_for(timeout=SECONDS * 1000)
    chat.look("11_two_wait")
    chat.approve.first.click()
    chat.reads("Sent to Anna.")
    chat.approve.nth(1).wait_for(state="detached", timeout=SECONDS * 1000)
    chat.press("Reject")
    chat.reads("One is sent.")


def test_stop_ends_the_run(chat: Chat) -> None:
    """In the middle of a reply; the conversation goes on after it."""
    chat.ask("Tell me a long story.", Turn("Once upon a time there was a king.", holds={4: Gate()}))
    chat.reads("Once")
    chat.page.locator("button.stop-button").click()
    chat.reads("The run was stopped: cancelled")
    chat.can_send()
    chat.look("12_stopped")
    chat.ask("Go on.", Turn("He had a castle."))
    chat.reads("He had a castle.")


def test_conversations_stay_apart(chat: Chat) -> None:
    """A new one is empty; each is there again when it is chosen, when the page is loaded again, and in a second tab; one is deleted."""
    chat.ask("My name is Ann.", Turn("Hello Ann."))
    chat.reads("Hello Ann.")
    chat.press("New conversation")
    chat.page.get_by_text("Hello Ann.").wait_for(state="hidden", timeout=SECONDS * 1000)
    chat.can_send()
    chat.ask("What is my name?", Turn("I do not know."))
    chat.reads("I do not know.")
    assert "Ann" not in str(chat.program.vendor.messages[-1])
    chat.look("13_second_conversation")
    chat.page.reload()
    chat.reads("I do not know.")
    chat.page.get_by_label("conversations stay apart light").click()
    chat.reads("Hello Ann.")
    tab = chat.page.context.new_page()
    tab.goto(chat.page.url)
    chat.ask("And now?", Turn("Still Ann."))
    tab.get_by_text("Still Ann.").wait_for(timeout=SECONDS * 1000)
    tab.close()
    chat.reads("Still Ann.")
    chat.look("14_first_again")
    chat.page.get_by_role("button", name="Clear").click()
    chat.page.get_by_label("conversations stay apart light").wait_for(state="detached", timeout=SECONDS * 1000)


def test_a_failure_is_a_plain_sentence(chat: Chat) -> None:
    """Nothing of what the server said."""
    chat.ask("Hello?", Failure(400, "secret"))
    chat.reads("The run failed")
    chat.look("15_failed")
    assert "secret" not in chat.page.content()


def test_pictures_that_a_model_names_are_not_fetched(chat: Chat, program: Program) -> None:
    """Their addresses may carry away what was said."""
    asked: list[str] = []
    chat.page.on("requestfinished", lambda one: asked.append(one.url))
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        address = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        chat.ask("Show me.", Turn(f"Look: ![one]({address}/1.png) <img src='{address}/2.png'> done", characters=200))
        chat.reads("done")
        chat.page.wait_for_timeout(500)
        elsewhere.settimeout(0.5)
        with pytest.raises(TimeoutError):
            elsewhere.accept()
    assert not [url for url in asked if url.startswith(address)]


def test_a_killed_server_loses_nothing(chat: Chat, program: Program) -> None:
    """Killed in the middle of a reply and started again: the reply is asked for again, the conversation and the others are there."""
    chat.ask(
        "How warm is it in Rome?", Turn(calls=[Call("get_temperature", {"city": "Rome"})]), Turn("It is wrong in Rome.", holds={3: Gate()})
    )
    chat.reads("It is wrong")
    program.kill()
    chat.page.wait_for_timeout(1000)
    chat.look("16_killed")
    gate = Gate()
    program.vendor.extend([Turn("It is 21 °C in Rome.", holds={3: gate})])
    program.start()
    chat.page.reload()
    chat.reads("How warm is it in Rome?", "get_temperature", "It is 21 °C")
    assert "wrong" not in chat.said
    chat.look("17_goes_on")
    gate.open()
    chat.reads("It is 21 °C in Rome.")
    chat.can_send()
    chat.ask("And in Oslo?", Turn("I did not ask."))
    chat.reads("I did not ask.")
    chat.look("18_and_on")
    assert [message["role"] for message in program.vendor.messages[-1]] == ["user", "assistant", "tool", "assistant", "user"]
