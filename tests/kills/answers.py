"""Looks at what conversations came to whose workers were killed."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from dbos import DBOS
from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.durable.engine import outside
from langchain_autotools.event_types import MessageDone, MessagesAdded, RunEnded, RunEvent, RunStarted
from langchain_autotools.history import repair

from .conversations import is_rejected, made, reply, texts_of
from .figures import Figures, look_at_calls, look_at_texts
from .worker import LIVES_ON, Place, effects_of

_PLACES = 7  # from how many positions the events are read


def look(place: Place, conversations: list[str], figures: Figures) -> None:
    """Look at the conversations, from a process that has sent nothing."""
    name = f"reader of {place.folder}"
    chats = made(place, name)
    launch(place.url, name, lease=place.lease)
    try:
        effects = Counter(effects_of(place.folder))
        for one in conversations:
            _look_at(chats, one, effects, figures)
            for run in chats.export(one)["runs"]:
                figures.runs += 1
                figures.elsewhere += outside(DBOS.get_workflow_status, run["id"]).executor_id == f"{LIVES_ON} of {place.folder}"
    finally:
        shutdown()
    if "py_pickle" in place.dump():
        figures.wrong.append("the database has a pickle")
    figures.wrong += overlaps(place, conversations)


def _look_at(chats: Conversations, conversation: str, effects: Counter[str], figures: Figures) -> None:
    """All that was sent is answered once, in its order, by a model that read what is there."""
    runs = [run for run in chats.export(conversation)["runs"] if run["kind"] != "append"]
    for run in runs:
        if chats.result(run["id"]) != chats.result(run.get("taken_by", run["id"])):
            figures.wrong.append(f"{run} has another result than the run that took its message")
    taken = [run for run in runs if "taken_by" in run]
    figures.taken += len(taken)
    messages, told = chats.messages(conversation), list(chats.events(conversation))
    if [message.text for message in messages if message.type == "human"] != texts_of(conversation) or repair(messages) != messages:
        figures.wrong.append(f"{conversation} is no history of what was sent: {messages}")
    for number, message in enumerate(messages):
        if isinstance(message, AIMessage) and _said(message) != _said(reply(messages[:number])):
            figures.wrong.append(f"{conversation} has an answer to something else: {message} in {messages}")
    if [run["kind"] for run in runs[:3]] != ["send"] * 3 or {run["kind"] for run in runs[3:]} != {"decide"}:
        figures.wrong.append(f"{conversation} has the runs {runs}")
    look_at_calls(messages, effects, figures, is_rejected)
    look_at_texts(told, messages, figures)
    figures.wrong += [
        f"{conversation}: {why}" for why in _misread(chats, conversation, messages, told, [run["id"] for run in runs if run not in taken])
    ]


def _said(message: AIMessage) -> Any:
    return message.text, message.tool_calls


def _misread(chats: Conversations, conversation: str, messages: Sequence[BaseMessage], told: list[RunEvent], runs: list[str]) -> list[str]:
    """What a reader of the events sees that is not there."""
    wrong = []
    read: list[BaseMessage] = []
    for event in told:
        read += event.messages if isinstance(event, MessagesAdded) else [event.message] if isinstance(event, MessageDone) else []
    if read != list(messages):
        other = next((pair for pair in zip_longest(read, messages) if pair[0] != pair[1]), None)
        wrong.append(f"what is read begins to be another thing at {other}")
    begins = [event.run_id for event in told if isinstance(event, RunStarted)]
    ends = [event.run_id for event in told if isinstance(event, RunEnded)]
    if begins != runs or ends != runs:
        wrong.append(f"runs {runs} begin as {begins} and end as {ends}")
    for number in range(0, len(told), max(1, len(told) // _PLACES)):
        if list(chats.events(conversation, after=told[number].position)) != told[number + 1 :]:
            wrong.append(f"the events after {told[number].position} are others")
    return wrong


def overlaps(place: Place, conversations: Sequence[str]) -> list[str]:
    """What a run did after a later run of its conversation, or after another process had gone on with it.

    A worker that was slow is left out once others were told that its run is theirs: it leaves the run at its next step.
    """
    lives: dict[int, int] = {}  # when each process began
    lost: dict[tuple[str, str], int] = {}  # when a run of a worker was taken over
    latest: dict[str, tuple[int, int]] = {}  # the run that each conversation has come to, and the process that makes it
    past: set[tuple[str, int]] = set()  # runs with the processes that have ceased to make them
    wrong = []
    for at, line in enumerate(map(json.loads, (place.folder / "diary").read_text().splitlines())):
        process, run = line["process"], line.get("run", "")
        if line["what"] == "lives":
            lives[process] = at
        elif line["what"] == "taken over":
            lost[line["silent"], run] = at
        elif lives[process] > lost.get((line["worker"], run), -1):
            conversation, number = run.rsplit("/", 2)[1:]
            before, maker = latest.get(conversation, (0, 0))
            if int(number) < before or (run, process) in past:
                wrong.append(f"{line} comes after run {before} of process {maker}")
            if int(number) == before and process != maker:
                past.add((run, maker))
            latest[conversation] = (int(number), process)
    return [why for why in wrong if any(f"/{quote(one, safe='')}/" in why for one in conversations)]
