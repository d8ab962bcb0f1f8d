"""Encoding of a run's events in AG-UI: the public function, which loads the encoder with its extra."""

from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Sequence
from typing import Final, overload

from langchain_core.messages import BaseMessage

from ..errors import ConfigurationError
from ..event_types import RunEvent
from .streaming import WholeTurns, encoded

_MISSING: Final = "AG-UI needs the extra `ag-ui` (from a checkout: pip install '.[ag-ui]')"


@overload
def ag_ui(
    events: Iterable[RunEvent],
    *,
    thread_id: str,
    run_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    nested: bool = True,
    history: Sequence[BaseMessage] | None = None,
    whole_turns: bool = False,
) -> Generator[bytes, None, None]: ...


@overload
def ag_ui(
    events: AsyncIterable[RunEvent],
    *,
    thread_id: str,
    run_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    nested: bool = True,
    history: Sequence[BaseMessage] | None = None,
    whole_turns: bool = False,
) -> AsyncGenerator[bytes, None]: ...


def ag_ui(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent],
    *,
    thread_id: str,
    run_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    nested: bool = True,
    history: Sequence[BaseMessage] | None = None,
    whole_turns: bool = False,
) -> Generator[bytes, None, None] | AsyncGenerator[bytes, None]:
    """Encode the events of a run in AG-UI, as server-sent events (`text/event-stream`). Needs the extra `ag-ui`.

    All that the stream tells is one run of the protocol, each turn a step of it. A run inside a tool is a subagent. Calls that need
    approval end the run with interrupts; `from_ag_ui` reads what is decided about them. Calls that are left to the page are the
    `pendingToolCallIds` of a run that has succeeded. `docs/ag_ui.md` lists what becomes of each event.

    A tool call is sent when its turn has ended, exactly as the message has it: a client cannot take back what it was sent. While it is
    being written, the custom events `tool_call_started`, `tool_call_delta` and `tool_call_discarded` tell of it.

    Args:
        events: What `events` or `aevents` returned, or a list of events that were kept.
        thread_id: The `threadId` that the page posted.
        run_id: The `runId` that the page posted; None for the id of the first run.
        heartbeat: The seconds in which nothing is sent after which a comment is sent, of asynchronous events; None for never.
        details: Whether the texts of exceptions are sent. They may hold what no reader should see.
        nested: Whether runs that tools make are told of.
        history: The server's own messages, sent first, for a page that has nothing of the conversation: one that was loaded again, say.
            With events that are empty, the calls that wait in it are the interrupts.
        whole_turns: Whether the text, the reasoning and the calls of a turn are sent only when the turn is complete. For durable runs:
            a reply that dies with its process is asked for again, and the protocol has no way to take back what was sent of it.

    Returns:
        A generator of bytes, asynchronous for asynchronous events. Closing it ends the run.

    Raises:
        ConfigurationError: `ag-ui-protocol` is not installed, or an argument cannot be what it should.
    """
    if not (isinstance(thread_id, str) and isinstance(run_id, str | None)):
        raise ConfigurationError("thread_id and run_id are the texts that the page posted")
    try:
        from .ag_ui_events import AgUiEncoder
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ag_ui":
            raise
        raise ConfigurationError(_MISSING) from error
    encoder = AgUiEncoder(thread_id, run_id, details=details, nested=nested, history=history)
    return encoded(events, WholeTurns(encoder) if whole_turns else encoder, heartbeat=heartbeat, details=details)
