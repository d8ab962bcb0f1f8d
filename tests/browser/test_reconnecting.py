"""A browser's own EventSource over a conversation whose server cuts every connection, dies and starts again."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.served_program import ServedProgram, until

pytest.importorskip("dbos", reason="needs the extra `durable`")
pytestmark = pytest.mark.browser

SERVER = '''
import sys
import time
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Header
from fastapi.responses import HTMLResponse, StreamingResponse
from langchain_core.messages import AIMessage

from langchain_autotools.durable import Conversations, launch
from langchain_autotools.encoders import SSE_HEADERS, sse
from langchain_autotools.testing import ScriptedChatModel

PAGE = """<!doctype html><script>
const texts = new Map(), seen = []
const source = new EventSource("/events")
const on = (name, act) => source.addEventListener(name, event => { seen.push(name); act(JSON.parse(event.data)) })
on("messages", data => data.messages.forEach(one => texts.set(one.data.id, one.data.content)))
on("text", data => texts.set(data.message_id, (texts.get(data.message_id) ?? "") + data.text))
on("message_discarded", data => texts.delete(data.message_id))
on("done", () => {})
on("error", event => {})
</script>"""


def look(place: str) -> str:
    "Look at a place."
    time.sleep(0.1)
    return f"{place} is fine."


def reply(messages, **_):
    if messages[-1].type == "human":
        call = {"name": "look", "args": {"place": messages[-1].text}, "id": f"call {len(messages)}"}
        yield AIMessage("Let me ")
        yield AIMessage("look.", tool_calls=[call])
        return
    for word in f"All is well in {messages[-2].tool_calls[0]['args']['place']} , I think .".split():
        time.sleep(0.02)
        yield word + " "


chats = Conversations(ScriptedChatModel(replies=reply, tools=[look]), "sqlite:///runs.sqlite", rerun=["look"])
launch(worker="worker", lease=1.0)
app = FastAPI()


@app.get("/")
async def page():
    return HTMLResponse(PAGE)


@app.get("/events")
async def events(last_event_id: Annotated[str | None, Header()] = None):
    async def cut():
        yield b"retry: 20\\n\\n"
        async for frame in sse(chats.aevents("one", last_event_id=last_event_id, follow=True)):
            yield frame
            if not frame.startswith(b":"):
                return

    return StreamingResponse(cut(), headers=SSE_HEADERS)


@app.post("/say")
async def say(text: str):
    return (await chats.asend("one", text)).run_id


@app.get("/texts")
async def texts():
    return [message.text for message in await chats.amessages("one") if message.type != "tool"]


uvicorn.run(app, port=int(sys.argv[1]), log_level="error", timeout_graceful_shutdown=1)
'''


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServedProgram]:
    """The running program."""
    (tmp_path / "server.py").write_text(SERVER)
    made = ServedProgram(["server.py", "{port}"], tmp_path)
    made.start()
    yield made
    made.end(signal.SIGKILL)


def test_a_page_whose_connection_is_cut_at_every_frame_ends_with_the_text_of_the_conversation(browser: Any, server: ServedProgram) -> None:
    """Each connection brings one event; the server is killed in a reply, and stopped as by a deploy while the page waits."""
    page = browser.new_page()
    page.goto(server.address)

    def say(text: str) -> None:
        httpx.post(f"{server.address}/say", params={"text": text}).raise_for_status()

    def shown() -> list[str]:
        return [str(text) for text in page.evaluate("[...texts.values()]")]

    def is_whole(count: int) -> bool:
        told = httpx.get(f"{server.address}/texts").json()
        return len(told) == count and told == shown()

    say("Rome")
    until(lambda: is_whole(3))
    say("Oslo")
    until(lambda: any("well" in text for text in shown()[4:]))
    server.end(signal.SIGKILL)  # in the middle of the reply
    server.start()
    until(lambda: is_whole(6))
    server.end(signal.SIGTERM)  # while the page waits for more
    server.start()
    say("Bern")
    until(lambda: is_whole(9))
    assert "done" not in page.evaluate("seen") and page.evaluate("source.readyState") != 2
    page.close()
