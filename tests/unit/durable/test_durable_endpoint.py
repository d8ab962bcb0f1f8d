"""examples/web/durable_endpoint.py, served by uvicorn in a process of its own that is killed and started again."""

import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx
import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from tests.support.event_stream import EventStreamParser, Frame
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn
from tests.support.served_program import ServedProgram

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
LOOKS = Turn("Let me look.", [Call("get_temperature", {"city": "Rome"})])


@pytest.fixture(scope="module")
def vendor() -> Iterator[OpenAIServer]:
    """The server that the example's model asks."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="module")
def program(vendor: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProgram]:
    """The running example."""
    made = ServedProgram(COMMAND, tmp_path_factory.mktemp("program"), OPENAI_API_KEY="key", OPENAI_BASE_URL=vendor.url)
    made.start()
    yield made
    made.end(signal.SIGKILL)


@pytest.fixture
def chat(program: ServedProgram) -> str:
    """The address of a new conversation."""
    return f"{program.address}/chats/{uuid4().hex}"


def say(chat: str, text: str, message_id: str) -> Any:
    """Send a message; what is answered."""
    response = httpx.post(chat, json={"text": text, "message_id": message_id}, timeout=20)
    assert response.status_code == 202
    return response.json()


def read(chat: str, last: str | None = None, until: str = "run_end", **parameters: str) -> Iterator[Frame]:
    """The frames of a conversation, up to one of a name."""
    headers = {} if last is None else {"Last-Event-ID": last}
    with httpx.stream("GET", chat, headers=headers, params=parameters, timeout=30) as response:
        assert response.status_code == 200
        parser = EventStreamParser()
        for piece in response.iter_raw():
            for frame in parser.feed(piece):
                yield frame
                if frame.event == until:
                    return


def shown(frames: list[Frame]) -> list[str]:
    """The texts that a page shows which drops what is void."""
    texts: dict[str, str] = {}
    for frame in frames:
        if frame.event == "text":
            texts[frame.json["message_id"]] = texts.get(frame.json["message_id"], "") + frame.json["text"]
        elif frame.event == "message_discarded":
            texts.pop(frame.json["message_id"])
    return list(texts.values())


def test_a_page_that_comes_back_misses_nothing_when_the_program_was_killed(program: ServedProgram, vendor: OpenAIServer, chat: str) -> None:
    """It is killed in the middle of a reply: the next one goes on with the run, and the frames go on behind Last-Event-ID."""
    gate, asked = Gate(), len(vendor.exchanges)
    vendor.extend([LOOKS, Turn("21 °C in Rome.", holds={3: gate}), Turn("21 °C in Rome.")])
    say(chat, "How warm is it in Rome?", "question")
    first: list[Frame] = []
    with suppress(httpx.TransportError):  # its connection dies with it
        for frame in read(chat):
            first.append(frame)
            if len(shown(first)) == 2:
                program.end(signal.SIGKILL)
    gate.open()
    program.start()
    rest = list(read(chat, first[-1].id))
    assert shown([*first, *rest]) == ["Let me look.", "21 °C in Rome."]
    assert [frame.event for frame in rest].count("message_discarded") == 1
    assert list(read(chat)) == [*first, *rest]
    assert [frame.event for frame in [*first, *rest]].count("tool_result") == 1 and len(vendor.exchanges) == asked + 3


def test_a_message_that_arrives_twice_is_answered_once(vendor: OpenAIServer, chat: str) -> None:
    """The page of a lost reply sends it again; the answer says where to read on."""
    vendor.extend([Turn("Hello.")])
    answers = [say(chat, "Hi.", "question") for _ in range(2)]
    assert answers[0] == answers[1]
    assert shown(list(read(chat, **answers[0]))) == ["Hello."]


def test_a_run_is_stopped_by_another_request(vendor: OpenAIServer, chat: str) -> None:
    """Whoever follows sees how it ended."""
    gate = Gate()
    vendor.extend([Turn("A long story.", holds={3: gate})])
    say(chat, "Tell me a story.", "question")
    assert gate.reached.wait(20)
    assert httpx.delete(f"{chat}/run", timeout=20).status_code == 204
    assert list(read(chat))[-1].json["stop_reason"] == "cancelled"


def test_what_makes_no_sense_is_refused(chat: str) -> None:
    """An id that no database can keep, and a message without an id."""
    assert httpx.post(f"{chat}%00", json={"text": "Hi.", "message_id": "1"}).status_code == 400
    assert httpx.post(chat, json={"text": "Hi."}).status_code == 422
