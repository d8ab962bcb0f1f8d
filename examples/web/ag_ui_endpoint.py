"""An agent for pages that speak AG-UI (CopilotKit and others), with calls that wait for a human.

    uvicorn examples.web.ag_ui_endpoint:app

The histories are the server's own. (A service checks whose thread it is.) A page that goes away ends its run.
What is said while a run goes on is put into that run's inbox; its stream tells where it was read.
"""

import queue
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing

from ag_ui.core import RunAgentInput
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from langchain_core.messages import BaseMessage
from pydantic import SecretStr

from langchain_autotools import ChatOpenAI, ConfigurationError, DecisionsError, aevents
from langchain_autotools.encoders import SSE_HEADERS, Posted, ag_ui, from_ag_ui
from langchain_autotools.event_types import MessageDone, RunEvent


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return "21 °C"


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


app = FastAPI()
key = SecretStr(secrets.token_hex())  # a service has one that it keeps
model = ChatOpenAI(model="gpt-5", tools=[get_temperature, send_mail], requires_approval=["send_mail"], approval_key=key)
threads: defaultdict[str, list[BaseMessage]] = defaultdict(list)
inboxes: dict[str, queue.Queue[BaseMessage]] = {}  # of the threads in which a run goes on


async def answer(thread: str, posted: Posted) -> AsyncIterator[RunEvent]:
    """The events of the run that goes on with what was decided and answers what was said; its messages are kept as they complete."""
    if not any(posted):
        return
    history, inbox = threads[thread], inboxes.setdefault(thread, queue.Queue())
    if not posted.decisions:
        history += posted.messages
    async with aclosing(aevents(model.astream(history, inbox=inbox, **posted.keywords))) as events:
        try:
            async for event in events:
                if isinstance(event, MessageDone) and event.parent_run_id is None:
                    history.append(event.message)
                yield event
        finally:
            inboxes.pop(thread, None)  # what was not read is still new when the page runs the agent again


@app.post("/agent")
async def agent(body: RunAgentInput) -> StreamingResponse:
    """One run of the protocol. A page that neither says nor decides anything has been loaded again: it is given the history.

    What is said while another run of the thread goes on is read by that one, and this one does nothing else.
    """
    history, inbox = threads[body.thread_id], inboxes.get(body.thread_id)
    waiting = [] if inbox is None else list(inbox.queue)
    try:
        posted = from_ag_ui(body, [*history, *waiting], approval_key=key, check=model.check)
    except DecisionsError as error:  # such as arguments that the tool does not take: the calls wait still
        raise HTTPException(400, error.problems) from error
    except ConfigurationError as error:
        raise HTTPException(400, str(error)) from error
    known = None if any(posted) else history
    if inbox is not None and posted.decisions:
        raise HTTPException(409, "A run goes on that decides about its calls.")
    if inbox is not None and posted.messages:
        inbox.put(posted.messages[0])
        posted = Posted([], [])
    stream = ag_ui(answer(body.thread_id, posted), thread_id=body.thread_id, run_id=body.run_id, history=known)
    return StreamingResponse(stream, headers=SSE_HEADERS)
