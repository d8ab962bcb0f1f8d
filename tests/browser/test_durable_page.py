"""The page of examples/web/durable_endpoint.py in a real browser. SCREENSHOTS=folder keeps a picture of each state."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.visited import SECONDS, Visited
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Failure, Turn
from tests.support.served_program import ServedProgram

pytest.importorskip("dbos", reason="needs the extra `durable`")
pytestmark = pytest.mark.browser

COMMAND = [
    "-m",
    "uvicorn",
    "--port",
    "{port}",
    "--log-level",
    "error",
    "--timeout-graceful-shutdown",
    "1",
    "examples.web.durable_endpoint:app",
]


@pytest.fixture
def vendor() -> Iterator[OpenAIServer]:
    """The server that the example's model asks."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def program(vendor: OpenAIServer, tmp_path: Path) -> Iterator[ServedProgram]:
    """The running example."""
    made = ServedProgram(COMMAND, tmp_path, OPENAI_API_KEY="key", OPENAI_BASE_URL=vendor.url)
    made.start()
    yield made
    made.end(signal.SIGKILL)


@pytest.fixture(params=["light", "dark"])
def opened(request: pytest.FixtureRequest, browser: Any, program: ServedProgram) -> Iterator[Visited]:
    """The page as a user has it, on a phone."""
    page = browser.new_page(color_scheme=request.param, viewport={"width": 390, "height": 700})
    broken: list[Any] = []
    page.on("pageerror", lambda error: broken.append(error))
    page.goto(program.address)
    yield Visited(page, request.param)
    page.close()
    assert broken == []


def ask(opened: Visited, text: str) -> None:
    """Send a message."""
    opened.page.get_by_label("Message").fill(text)
    opened.press("Send")


def texts(opened: Visited) -> list[str]:
    """All that is to be seen of the conversation, in order."""
    return [str(text) for text in opened.page.locator("main > div").all_inner_texts()]


def test_a_page_goes_on_where_its_server_was_killed(opened: Visited, program: ServedProgram, vendor: OpenAIServer) -> None:
    """Text of a dead attempt goes; a message that is typed meanwhile arrives when the server is back; a page loaded again has all."""
    gate = Gate()
    vendor.extend([Turn("Let me look.", [Call("get_temperature", {"city": "Rome"})]), Turn("It is 21 °C in Rome.", holds={3: gate})])
    ask(opened, "How warm is it in Rome?")
    opened.page.get_by_text("It is").wait_for(timeout=SECONDS * 1000)
    opened.look("durable_1_streaming")
    program.end(signal.SIGKILL)
    gate.open()
    ask(opened, "And a joke?")
    vendor.extend([Turn("It is 21 °C in Rome."), Turn("<b>No</b> jokes today.")])
    program.start()
    opened.sees("It is 21 °C in Rome.", "<b>No</b> jokes today.")
    opened.look("durable_2_answered")
    call = 'get_temperature {"city":"Rome"} → 21 °C'
    whole = ["How warm is it in Rome?", "Let me look.", call, "It is 21 °C in Rome.", "And a joke?", "<b>No</b> jokes today."]
    assert texts(opened) == whole
    opened.page.reload()
    opened.sees("<b>No</b> jokes today.")
    assert texts(opened) == whole
    assert len(vendor.exchanges) == 4


def test_a_run_is_stopped_and_a_failure_is_a_plain_sentence(opened: Visited, vendor: OpenAIServer) -> None:
    """What has no answer says why; the next message is answered."""
    vendor.extend([Turn("A long story.", holds={3: Gate()})])
    ask(opened, "Tell me a story.")
    opened.page.get_by_text("A lo").wait_for(timeout=SECONDS * 1000)
    opened.press("Stop")
    opened.sees("cancelled")
    vendor.extend([Failure(401, "secret", "invalid_request_error", "invalid_api_key"), Turn("Hello.")])
    ask(opened, "Hello?")
    opened.page.get_by_text("The run failed.").wait_for(timeout=SECONDS * 1000)
    ask(opened, "Again?")
    opened.sees("Hello.")
    opened.look("durable_3_stopped_and_failed")
    assert "secret" not in opened.page.content()
