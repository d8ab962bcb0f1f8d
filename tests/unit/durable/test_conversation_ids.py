"""Ids of conversations: on every database each one is its own, and what no database can keep is refused by every method."""

import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from langchain_autotools import pending_calls
from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import asks
from tests.support.postgres import postgres_server

__all__ = ["postgres_server"]


def send(to: str) -> str:
    "Send."
    return f"Sent to {to}."


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def chats(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversations]:
    """Conversations over a database of each kind; their model asks for a call that needs approval."""
    url = f"sqlite:///{tmp_path_factory.mktemp('ids') / 'runs.sqlite'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_server").create("ids")
    model = ScriptedChatModel(replies=lambda messages, **_: asks(("send", {"to": "Ann"})), tools=[send], requires_approval=["send"])
    made = Conversations(model, url, name="ids")
    launch(url, "worker of ids")
    yield made
    shutdown()


ALIKE: list[Callable[[str], str]] = [
    str.swapcase,
    str.casefold,
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: unicodedata.normalize("NFKC", text),
    lambda text: text + "/1",
    lambda text: text + "/",
    lambda text: "/" + text,
    lambda text: text + "%",
    lambda text: text + " ",
    lambda text: "%" * len(text),
    lambda text: "_" * len(text),
    lambda text: text[:-1],
    lambda text: text.replace("/", "%2F").replace("_", "%5F"),
]

ids = st.text(st.sampled_from("aAbßéİſ%_/ .1-å😀\\'\""), min_size=1, max_size=12)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two ids that are alike, and not the same."""
    one = draw(ids)
    other = draw(st.sampled_from(ALIKE))(one)
    assume(other and other != one)
    return one, other


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # DBOS's threads use it, at any moment
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs())
@example(("alice", "ALICE"))
@example(("a_b", "axb"))
@example(("a", "a/1"))
@example(("x" * 500, "X" * 500))
def test_what_is_done_to_one_conversation_is_not_done_to_another(chats: Conversations, pair: tuple[str, str]) -> None:
    """No method sees, adds to, cancels or deletes what is under an id that is only like its own."""
    one, other = pair
    chats.delete(one)
    chats.delete(other)
    sent = chats.append(one, [HumanMessage("mine", id="m1")])
    whole = chats.export(one)["messages"]
    assert chats.messages(other) == [] and list(chats.events(other)) == [] and chats.pending(other) == []
    assert chats.history(other).messages == [] and chats.export(other)["runs"] == []
    with pytest.raises(ConfigurationError, match="has no message"):
        chats.fork(other, "m1")
    chats.cancel(other)
    chats.delete(other)
    chats.append(other, [HumanMessage("theirs", id="m1")])
    assert [message.text for message in chats.messages(one)] == ["mine"]
    assert chats.append(one, [HumanMessage("mine", id="m1")]) == sent
    chats.delete(other)
    assert chats.export(one)["messages"] == whole and sorted(info.id for info in chats.list()) == [one]
    chats.delete(one)
    assert chats.list() == []


def test_a_call_is_shown_and_decided_under_its_own_id_alone(chats: Conversations) -> None:
    """`ALICE` has no part in what waits at `alice`."""
    waits = pending_calls(chats.result(chats.send("alice", "Go"), timeout=30))
    assert chats.pending("alice") == waits and len(waits) == 1
    for other in ("ALICE", "Alice", "alice/1", "%", "_____"):
        assert chats.pending(other) == []
        with pytest.raises(ConfigurationError, match="does not wait"):
            chats.decide(other, [waits[0].approve()])
    chats.delete("alice")


def test_many_runs_are_found_in_order(chats: Conversations) -> None:
    """However many they are: they are looked up some at a time, and none is missed or doubled."""
    for number in range(40):
        chats.append("long", [HumanMessage(str(number), id=f"m{number}")])
    assert [message.text for message in chats.messages("long")] == [str(number) for number in range(40)]
    chats.delete("long")
    assert chats.messages("long") == []


METHODS: list[Callable[[Conversations, str], Any]] = [
    lambda chats, name: chats.send(name, "Hello"),
    lambda chats, name: chats.append(name, [HumanMessage("Hello")]),
    lambda chats, name: chats.decide(name, [asked()]),
    lambda chats, name: chats.events(name),
    lambda chats, name: chats.messages(name),
    lambda chats, name: chats.pending(name),
    lambda chats, name: chats.history(name),
    lambda chats, name: chats.cancel(name),
    lambda chats, name: chats.delete(name),
    lambda chats, name: chats.fork(name, "m1"),
    lambda chats, name: chats.fork("there", "m1", to=name),
    lambda chats, name: chats.export(name),
    lambda chats, name: Conversations(chats.model, name=name),
]


def asked() -> Any:
    """A decision about a call of somebody's."""
    run = ScriptedChatModel(replies=[asks(("send", {"to": "Ann"}))], tools=[send], requires_approval=["send"]).invoke("Go")
    return pending_calls(run)[0].approve()


@pytest.mark.parametrize(
    "name", ["a\0b", "\ud83d", "a" * 1001, "é" * 167, "x" * 10_000], ids=["nul", "surrogate", "long", "quoted", "10 kB"]
)
def test_an_id_that_a_database_cannot_keep_is_refused_by_every_method(chats: Conversations, name: str) -> None:
    """NUL, lone surrogates and over 1,000 bytes when quoted; alike on every database, with an error that names the id."""
    chats.append("there", [HumanMessage("Hello", id="m1")])
    for method in METHODS:
        with pytest.raises(ConfigurationError, match="id of a conversation|name of conversations"):
            method(chats, name)
    with pytest.raises(ConfigurationError, match="there is no run|id of a conversation"):
        chats.result(f"conversations/ids/{name}/1")
    assert [info.id for info in chats.list()] == ["there"]
    chats.delete("there")
