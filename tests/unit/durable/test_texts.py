"""Texts that no database can store: what is said with them is said, and what is named by them is refused, alike on every database."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import PendingCall, new_messages
from langchain_autotools.durable import Conversations, DurableModel, RunFailedError, durable, launch, shutdown
from langchain_autotools.encoders import sse
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import RunFailed, TextDelta
from langchain_autotools.executor import Decision
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import answered, asks
from tests.support.postgres import postgres_server

__all__ = ["postgres_server"]

HALF = "\ud83d"


@tool
def say(what: str) -> str:
    """Say something."""
    return f"said {what}{HALF}"


def reply(messages: list[BaseMessage], **_: Any) -> Any:
    """Has half a pair of surrogates wherever a model may have one."""
    if messages[-1].text == "Fail":
        raise ValueError(f"no {HALF}")
    return f"Done {HALF}." if answered(messages) else asks(("say", {"what": f"hi{HALF}\0"}), text=f"Look {HALF}")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DurableModel, Conversations]]:
    """A durable model, and conversations whose calls need approval, over a database of each kind."""
    url = f"sqlite:///{tmp_path_factory.mktemp('texts') / 'runs.sqlite'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_server").create("texts")
    made = durable(ScriptedChatModel(replies=reply, tools=[say]), "texts")
    chats = Conversations(ScriptedChatModel(replies=reply, tools=[say], requires_approval=["say"]), url, name="texts")
    launch(url, "worker of texts")
    yield made, chats
    shutdown()


def test_a_durable_run_takes_and_gives_half_a_pair_of_surrogates(kept: tuple[DurableModel, Conversations]) -> None:
    """No text is lost: U+FFFD is where the half did, in messages, results, events, errors and what is sent."""
    chat, _ = kept
    run = chat.invoke(f"Go {HALF}", {"metadata": {"a": HALF}}, run_id="one", stop=[HALF])
    assert [message.content for message in new_messages(run)] == ["Look \ufffd", "said hi\ufffd\0\ufffd", "Done \ufffd."]
    assert [event.text for event in chat.events("one") if isinstance(event, TextDelta)] == ["Look \ufffd", "Done \ufffd."]
    assert "Done \ufffd." in b"".join(sse(chat.events("one"))).decode()
    with pytest.raises(ValueError, match="no"):
        chat.invoke("Fail", run_id="fails")
    with pytest.raises(RunFailedError, match="ValueError: no \ufffd"):
        chat.result("fails")


@pytest.mark.parametrize(
    ("decide", "last"),
    [
        (lambda call: call.approve(), "said hi\ufffd\0\ufffd"),
        (lambda call: call.edit({"what": f"ho{HALF}\0"}), "said ho\ufffd\0\ufffd"),
        (lambda call: call.reject(f"no{HALF}\0"), "no\ufffd"),
        (lambda call: call.respond(f"yes{HALF}\0"), "yes\ufffd\0"),
    ],
    ids=["approve", "edit", "reject", "respond"],
)
def test_a_conversation_takes_and_gives_half_a_pair_of_surrogates(
    kept: tuple[DurableModel, Conversations], decide: Callable[[PendingCall], Decision], last: str
) -> None:
    """In what is sent, appended and decided, and in what the model and its tools say; NUL stays what it is."""
    _, chats = kept
    chats.append("a", [HumanMessage(f"Before {HALF}\0")])
    chats.result(chats.send("a", HumanMessage(f"Go {HALF}\0", name=HALF)), timeout=30)
    (call,) = chats.pending("a")
    decision = decide(call)
    decided = chats.decide("a", [decision])
    assert chats.decide("a", [decision]) == decided
    chats.result(decided, timeout=30)
    before, sent, asked, result, _ = [str(message.content) for message in chats.messages("a")]
    assert (before, sent, asked) == ("Before \ufffd\0", "Go \ufffd\0", "Look \ufffd") and last in result
    with pytest.raises(RunFailedError, match="no \ufffd"):
        chats.result(chats.send("a", "Fail"), timeout=30)
    (failed,) = [event for event in chats.events("a") if isinstance(event, RunFailed)]
    assert "no \ufffd" in str(failed.error)
    chats.delete("a")


@pytest.mark.parametrize("name", [HALF, "a\0b"], ids=["surrogate", "nul"])
def test_ids_that_no_database_can_keep_are_refused(kept: tuple[DurableModel, Conversations], name: str) -> None:
    """Of runs and of messages: a mended one could be that of another."""
    chat, chats = kept
    for ask in (
        lambda: chat.invoke("Go", run_id=name),
        lambda: chat.result(name),
        lambda: chat.events(name),
        lambda: chat.cancel(name),
        lambda: chats.send("a", HumanMessage("Go", id=name)),
        lambda: chats.append("a", [HumanMessage("Go", id=name)]),
    ):
        with pytest.raises(ConfigurationError, match="neither NUL nor lone surrogates|there is no run"):
            ask()  # type: ignore[no-untyped-call]
    assert chats.messages("a") == []
