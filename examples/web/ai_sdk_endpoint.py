"""A chat page for a model with tools: text, calls, progress, approvals, stop. What it reads is what the AI SDK's `useChat` reads.

    uvicorn examples.web.ai_sdk_endpoint:app

The histories are the server's own, and a page decides only about calls that it was shown. A page that goes away ends its run.
What is said while a run goes on is put into that run's inbox; the stream tells where it was read.
"""

import queue
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException
from fastapi.responses import FileResponse, Response, StreamingResponse
from langchain_core.messages import BaseMessage
from pydantic import SecretStr

from langchain_autotools import ChatOpenAI, ConfigurationError, DecisionsError, ToolContext, aevents
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


app = FastAPI()
key = SecretStr(secrets.token_hex())  # from your secrets, where more than one process serves
model = ChatOpenAI(model="gpt-5", tools=[get_temperature, send_mail], requires_approval=["send_mail"], approval_key=key)
histories: defaultdict[str, list[BaseMessage]] = defaultdict(list)  # by the page's own id: a service asks first who the user is
inboxes: defaultdict[str, queue.Queue[BaseMessage]] = defaultdict(queue.Queue)
running: set[str] = set()  # the conversations in which a run goes on


async def answer(conversation: str, posted: Posted) -> AsyncIterator[RunEvent]:
    """The events of the run that answers; its messages are kept as they complete. What the last run has not read comes before the new."""
    history, inbox = histories[conversation], inboxes[conversation]
    if not posted.decisions:
        history += [*(inbox.get_nowait() for _ in range(inbox.qsize())), *posted.messages]
    async with aclosing(aevents(model.astream(history, inbox=inbox, **posted.keywords))) as events:
        running.add(conversation)
        try:
            async for event in events:
                if isinstance(event, MessageDone) and event.parent_run_id is None:
                    history.append(event.message)
                yield event
        finally:
            running.discard(conversation)


@app.post("/api/chat")
async def chat(body: Annotated[dict[str, Any], Body()]) -> Response:
    """Answer the user's message, or go on with what they decided, or both at once; without either, answer what no run has read.

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
    if conversation in running or (not any(posted) and inbox.empty()):
        raise HTTPException(409, "There is nothing new in this.")
    return StreamingResponse(ai_sdk(answer(conversation, posted)), headers=dict(AI_SDK_HEADERS))


@app.get("/api/chat/{conversation}")
async def known(conversation: str) -> list[dict[str, Any]]:
    """What a page that is loaded again begins with."""
    return ai_sdk_messages(histories.get(conversation, []))


@app.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(Path(__file__).with_name("ai_sdk_page.html"))
