"""A chat page for a model with tools: text, calls, progress, approvals, stop. What it reads is what the AI SDK's `useChat` reads.

    uvicorn examples.web.ai_sdk_endpoint:app

The histories are the server's own, in `ai_sdk_chats.sqlite`: a page that is loaded again shows its conversation, also after a restart.
A page decides only about calls that it was shown. One that goes away ends its run; loaded again, it asks for the rest.
What is said while a run goes on is put into that run's inbox; the stream tells where it was read.
"""

import json
import os
import queue
import secrets
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException
from fastapi.responses import FileResponse, Response, StreamingResponse
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from pydantic import SecretStr

from langchain_autotools import ChatOpenAI, ConfigurationError, DecisionsError, ToolContext, aevents, pending_calls
from langchain_autotools.encoders import AI_SDK_HEADERS, Posted, ai_sdk, ai_sdk_messages, from_ai_sdk
from langchain_autotools.event_types import MessageDone, RunEvent


def get_temperature(city: str, context: ToolContext) -> str:
    """Current temperature of a city."""
    for done, source in enumerate(("station", "satellite"), 1):
        context.report(f"asking the {source} ({done} of 2)")
        time.sleep(0.2)
    return "21 °C"


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


class Histories(dict[str, list[BaseMessage]]):
    """The histories, by the page's own id: a service asks first who the user is."""

    def __init__(self, file: str) -> None:
        self._kept = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._kept.execute("CREATE TABLE IF NOT EXISTS messages (conversation TEXT, message TEXT)")
        self._kept.execute("CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, key TEXT)")

    def __missing__(self, conversation: str) -> list[BaseMessage]:
        rows = self._kept.execute("SELECT message FROM messages WHERE conversation = ? ORDER BY rowid", [conversation])
        return self.setdefault(conversation, messages_from_dict([json.loads(message) for (message,) in rows]))

    def keep(self, conversation: str, *messages: BaseMessage) -> None:
        """Add messages to the end of a history."""
        self[conversation] += messages
        rows = [(conversation, json.dumps(message_to_dict(message), default=str)) for message in messages]
        self._kept.executemany("INSERT INTO messages VALUES (?, ?)", rows)

    def key(self) -> SecretStr:
        """The key that calls are signed with: a call that waits can be decided after a restart."""
        self._kept.execute("INSERT OR IGNORE INTO keys VALUES ('approvals', ?)", [secrets.token_hex()])
        return SecretStr(self._kept.execute("SELECT key FROM keys WHERE name = 'approvals'").fetchone()[0])


app = FastAPI()
histories = Histories(os.environ.get("CHATS", "ai_sdk_chats.sqlite"))
key = histories.key()  # better from your secrets
model = ChatOpenAI(model="gpt-5", tools=[get_temperature, send_mail], requires_approval=["send_mail"], approval_key=key)
inboxes: defaultdict[str, queue.Queue[BaseMessage]] = defaultdict(queue.Queue)
running: set[str] = set()  # the conversations in which a run goes on


async def answer(conversation: str, posted: Posted) -> AsyncIterator[RunEvent]:
    """The events of the run that answers; its messages are kept as they complete. What the last run has not read comes before the new."""
    history, inbox = histories[conversation], inboxes[conversation]
    if not posted.decisions:
        histories.keep(conversation, *(inbox.get_nowait() for _ in range(inbox.qsize())), *posted.messages)
    async with aclosing(aevents(model.astream(history, inbox=inbox, **posted.keywords))) as events:
        running.add(conversation)
        try:
            async for event in events:
                if isinstance(event, MessageDone) and event.parent_run_id is None:
                    histories.keep(conversation, event.message)
                yield event
        finally:
            running.discard(conversation)


def is_cut(history: list[BaseMessage]) -> bool:
    """Whether a run has left a history in the middle: the page went away, and nobody has to decide anything."""
    return bool(history) and (history[-1].type != "ai" or bool(getattr(history[-1], "tool_calls", ()))) and not pending_calls(history)


@app.post("/api/chat")
async def chat(body: Annotated[dict[str, Any], Body()]) -> Response:
    """Answer the user's message, or go on with what they decided, or both at once; without either, answer what is not answered yet.

    While a run goes on the message is for that run, whose stream tells where it was read.
    """
    conversation = str(body.get("id"))
    history, inbox = histories[conversation], inboxes[conversation]
    try:
        posted = from_ai_sdk(body, history, approval_key=key, check=model.check)
    except DecisionsError as error:  # which the page shows beside the calls, whose editors stay open
        raise HTTPException(400, error.problems) from error
    except ConfigurationError as error:
        raise HTTPException(400, str(error)) from error
    if conversation in running and not posted.decisions:
        for message in posted.messages:
            inbox.put(message)
        return Response(status_code=202)
    if conversation in running or (not any(posted) and inbox.empty() and not is_cut(history)):
        raise HTTPException(409, "There is nothing new in this.")
    return StreamingResponse(ai_sdk(answer(conversation, posted)), headers=dict(AI_SDK_HEADERS))


@app.get("/api/chat/{conversation}")
async def known(conversation: str) -> list[dict[str, Any]]:
    """What a page that is loaded again begins with."""
    return ai_sdk_messages(histories[conversation])


@app.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(Path(__file__).with_name("ai_sdk_page.html"))
