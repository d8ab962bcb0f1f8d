"""The ids that calls are sent with whose server gave them none."""

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_autotools import new_messages
from langchain_autotools.testing import ScriptedChatModel

IDS = ["call_7fe2181dc2995cc1bea7b452", "call_7289709b17495cadbdc69628"]


def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: dunes"


def sent_ids(history: list[BaseMessage], turns: int = 1) -> list[str]:
    """The ids under which the last request of a run sends the results of its calls, which have none of the server's."""
    call = {"index": 0, "function": {"name": "look", "arguments": '{"place": "Rügen"}'}}
    model = ScriptedChatModel(tools=[look], replies=[*[[call]] * turns, "Done."])
    history += new_messages(model.invoke(history))
    return [str(message.tool_call_id) for message in model.requests[-1].messages if message.type == "tool"]


def test_an_id_stays_what_it_was() -> None:
    """The same history gives the same ids in every release: what is stored replays byte for byte."""
    history: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("Hi \N{WAVING HAND SIGN}")]
    assert sent_ids(history, 2) == IDS
    assert sent_ids([*history, HumanMessage([{"type": "text", "text": "And now?"}])])[:2] == IDS


def test_a_message_that_was_changed_counts_as_it_is() -> None:
    """An edit in place of an old message changes the ids of calls that are made after it, and no others."""
    history: list[BaseMessage] = [HumanMessage("My card is 1234.")]
    (first,) = sent_ids(history)
    again = [*history, HumanMessage("Go on.")]
    unchanged = sent_ids([*again])
    history[0].content = "My card is ****."
    changed = sent_ids([*again])
    assert unchanged[0] == changed[0] == first
    assert unchanged[1] != changed[1]
