"""The turns of a run as AG-UI's client has them: each is a message, and knows what the text of the run has before it."""

import json

from langchain_core.messages import AIMessage

from langchain_autotools import events
from langchain_autotools.encoders import ag_ui
from langchain_autotools.testing import ScriptedChatModel
from tests.support.ag_ui_client import AgUiClient


def look(place: int) -> str:
    """Look at a place."""
    return f"{place}!"


def stream() -> list[bytes]:
    """A run of three turns, whose replies have one id."""
    replies = [
        AIMessage(text, id="s", tool_calls=[{"name": "look", "args": {"place": place}, "id": f"call {place}"}])
        for place, text in enumerate(("One.", "Two."))
    ]
    model = ScriptedChatModel(tools=[look], replies=[*replies, AIMessage("Done.", id="s")])
    return list(ag_ui(events(model.stream("Go")), thread_id="thread"))


def test_each_turn_is_a_message() -> None:
    """Although the server gives all its replies one id."""
    client = AgUiClient()
    client.read(stream())
    assert [message["content"] for _, message in client.own("assistant")] == ["One.", "Two.", "Done."]


def test_the_start_of_a_message_has_the_separator() -> None:
    """In its metadata: a client that shows one text puts it before the message's own."""
    lines = b"".join(stream()).decode().splitlines()
    told = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    begun = [frame.get("metadata") for frame in told if frame["type"] == "TEXT_MESSAGE_START"]
    assert begun == [None, *[{"autotools": {"separator": "\n"}}] * 2]
