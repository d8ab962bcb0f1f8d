"""Runs that go on while nobody reads: a client that lost its connection comes back with Last-Event-ID, and misses nothing.

    uvicorn examples.web.kept_runs:app

The events are kept in this process's memory for as long as it runs. A page reads them with `new EventSource("/runs/" + id)`, and closes
that at `done` or `error`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import count
from typing import Annotated
from uuid import uuid4

from fastapi import Body, FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse

from langchain_autotools import ChatOpenAI, aevents
from langchain_autotools.encoders import SSE_HEADERS, sse
from langchain_autotools.event_types import RunEvent


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return "21 °C"


class KeptRun:
    """A run in a task of its own, and all that it has told: events, then what it failed with, or None for its end."""

    def __init__(self, question: str) -> None:
        self.told: list[RunEvent | Exception | None] = []
        self.changed = asyncio.Condition()
        self.cancel = asyncio.Event()
        self.task = asyncio.create_task(self.run(question))

    async def run(self, question: str) -> None:
        """Answer, whoever listens."""
        try:
            async with aclosing(aevents(model.astream(question, cancel=self.cancel))) as events:
                async for event in events:
                    await self.tell(event)
        except Exception as error:
            await self.tell(error)
        else:
            await self.tell(None)

    async def tell(self, news: RunEvent | Exception | None) -> None:
        """Keep what is new, and wake who waits for it."""
        async with self.changed:
            self.told.append(news)
            self.changed.notify_all()

    async def read(self) -> AsyncIterator[RunEvent]:
        """All events, those that are still to come too. A reader who leaves ends nothing."""
        for number in count():
            async with self.changed:
                while number == len(self.told):
                    await self.changed.wait()
            news = self.told[number]
            if news is None:
                return
            if isinstance(news, Exception):
                raise news
            yield news


app = FastAPI()
model = ChatOpenAI(model="gpt-5", tools=[get_temperature])
runs: dict[str, KeptRun] = {}


@app.post("/runs", status_code=202)
async def start(question: Annotated[str, Body(embed=True)]) -> dict[str, str]:
    """Begin a run; its id is all that a client needs."""
    run_id = uuid4().hex
    runs[run_id] = KeptRun(question)
    return {"id": run_id}


@app.get("/runs/{run_id}")
async def follow(run_id: str, last_event_id: Annotated[str | None, Header()] = None) -> StreamingResponse:
    """What has happened since the last frame that the client has seen, and what happens from now on."""
    stream = sse(known(run_id).read(), after=last_event_id)
    return StreamingResponse(stream, headers=SSE_HEADERS)


@app.delete("/runs/{run_id}", status_code=204)
async def stop(run_id: str) -> None:
    """End a run: its readers see how it ended."""
    known(run_id).cancel.set()


def known(run_id: str) -> KeptRun:
    """A run that there is."""
    if run_id not in runs:
        raise HTTPException(404, "There is no such run.")
    return runs[run_id]
