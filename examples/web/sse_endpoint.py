"""Conversations with a model over server-sent events: POST a question, read what happens; decisions about calls that wait go the same way.

    uvicorn examples.web.sse_endpoint:app

The histories are the server's own. A client that goes away ends its run.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from langchain_autotools import ChatOpenAI, aevents
from langchain_autotools.encoders import SSE_HEADERS, sse
from langchain_autotools.event_types import MessageDone, RunEvent


class Posted(BaseModel):
    """What a client posts: a question, decisions, made of what the frame `pending` has shown, or both."""

    question: str | None = None
    decisions: list[dict[str, Any]] | None = None


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return "21 °C"


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


app = FastAPI()
model = ChatOpenAI(model="gpt-5", tools=[get_temperature, send_mail], requires_approval=["send_mail"])
histories: defaultdict[str, list[BaseMessage]] = defaultdict(list)


async def answer(history: list[BaseMessage], posted: Posted) -> AsyncIterator[RunEvent]:
    """The events of the run that answers; its messages are kept as they complete."""
    keywords: dict[str, Any] = {}
    if posted.decisions:
        keywords = {"resume": posted.decisions, "message": posted.question}
    elif posted.question is not None:
        history.append(HumanMessage(posted.question))
    async with aclosing(aevents(model.astream(history, **keywords))) as events:
        async for event in events:
            if isinstance(event, MessageDone) and event.parent_run_id is None:
                history.append(event.message)
            yield event


@app.post("/conversations/{conversation}")
async def converse(conversation: str, posted: Posted) -> StreamingResponse:
    """Answer a question, or go on with what was decided, or both at once. What cannot be carried out is told of before anything begins."""
    history = histories[conversation]
    if posted.decisions is not None and (problems := model.check(history, posted.decisions)):
        raise HTTPException(400, problems)
    stream = sse(answer(history, posted))
    return StreamingResponse(stream, headers=SSE_HEADERS)
