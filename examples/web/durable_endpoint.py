"""Conversations that outlive this program: a page sends with POST, and follows with GET over every restart. Needs the extra `durable`.

    uvicorn --timeout-graceful-shutdown 1 examples.web.durable_endpoint:app

They are in chats.sqlite. Kill the program in the middle of an answer and start it again: the answer goes on, and the page misses nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import Body, FastAPI, Header, Request
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from langchain_core.messages import HumanMessage

from langchain_autotools import ChatOpenAI, ConfigurationError
from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.encoders import SSE_HEADERS, sse


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return "21 °C"


@asynccontextmanager
async def worker(_: FastAPI) -> AsyncIterator[None]:
    """Go on at once with what a killed program has left."""
    launch()
    yield
    shutdown()


app = FastAPI(lifespan=worker)
model = ChatOpenAI(model="gpt-5", tools=[get_temperature])
chats = Conversations(model, "sqlite:///chats.sqlite", rerun=["get_temperature"])


@app.post("/chats/{chat}", status_code=202)
async def send(chat: str, text: Annotated[str, Body()], message_id: Annotated[str, Body()]) -> dict[str, str]:
    """Take a message, which a run will answer. With the same id again, from a page that got no reply, it is the same message."""
    return {"after": (await chats.asend(chat, HumanMessage(text, id=message_id))).position}


@app.get("/chats/{chat}")
async def follow(chat: str, after: str | None = None, last_event_id: Annotated[str | None, Header()] = None) -> StreamingResponse:
    """All that has happened in a conversation since the last frame that the page has, and all that happens from now on."""
    events = chats.aevents(chat, after=after, last_event_id=last_event_id, follow=True)
    return StreamingResponse(sse(events), headers=SSE_HEADERS)


@app.delete("/chats/{chat}/run", status_code=204)
async def stop(chat: str) -> None:
    """End the run that answers, in whichever process it is."""
    await chats.acancel(chat)


@app.get("/")
async def page() -> FileResponse:
    """The page. Its conversation is known by an id that nobody can guess: a service asks first who the user is."""
    return FileResponse(Path(__file__).with_name("durable_page.html"))


@app.exception_handler(ConfigurationError)
async def refused(_: Request, error: Exception) -> JSONResponse:
    """What makes no sense, such as an id that no database can keep."""
    return JSONResponse({"detail": str(error)}, 400)
