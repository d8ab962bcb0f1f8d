"""`claims(url)`: a store of claims in SQLite or PostgreSQL that knows which processes are alive."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import HumanMessage
from pydantic import SecretStr
from sqlalchemy.exc import OperationalError

from langchain_autotools import AlreadyResumedError, ConfigurationError, claims, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel
from tests.support.claims import at_once
from tests.support.durable import answered, asks
from tests.support.postgres import postgres_server

__all__ = ["postgres_server"]

_PROCESS = """
import sys
from langchain_autotools import claims
store = claims(sys.argv[1])
for line in sys.stdin:
    name, *arguments = line.split()
    print(getattr(store, name)(*arguments), flush=True)
"""


class Elsewhere:
    """A process that uses a store."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROCESS, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __call__(self, *words: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{' '.join(words)}\n")
        return self._process.stdout.readline().strip()

    def signal(self, kind: int) -> None:
        """Send it a signal."""
        self._process.send_signal(kind)

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/claims.db"
    made: str = request.getfixturevalue("postgres_server").create(f"claims_{os.urandom(4).hex()}")
    return made


@pytest.fixture
def elsewhere(url: str) -> Iterator[Callable[[], Elsewhere]]:
    """Makes processes that use the same store, and end with the test."""
    made: list[Elsewhere] = []

    def start() -> Elsewhere:
        made.append(Elsewhere(url))
        return made[-1]

    yield start
    for one in made:
        one.end()


def test_a_row_is_taken_begun_and_done_by_its_owner_alone(url: str) -> None:
    """Each step compares the owner; what was done stays, and is what everybody is given."""
    store, other = claims(url), claims(url)
    assert (store.take("key", "one"), other.take("key", "two"), store.take("key", "one")) == ("mine", "running", "mine")
    assert (other.begin("key", "two"), other.done("key", "two", {}), store.begin("key", "one")) == (False, False, True)
    other.release("key", "two")
    assert other.take("key", "two") == "running"
    assert store.done("key", "one", {"type": "tool", "text": "Grüße"})
    store.release("key", "one")
    store.end("one")
    assert other.take("key", "two") == {"type": "tool", "text": "Grüße"}


def test_what_is_given_back_is_free_and_what_an_ended_owner_began_is_left(url: str) -> None:
    """`release` and `end`, within one process."""
    store = claims(url)
    for key in ("released", "taken", "begun"):
        store.take(key, "one")
        store.begin(key, "one") if key != "taken" else None
    store.release("released", "one")
    store.end("one")
    assert [store.take(key, "two") for key in ("released", "taken", "begun")] == ["mine", "mine", "left"]
    assert not store.done("begun", "one", {})


def test_what_a_killed_process_had_is_taken_over_and_a_stopped_one_keeps_it(url: str, elsewhere: Callable[[], Elsewhere]) -> None:
    """However long it stands still: nothing is guessed from time."""
    store, process = claims(url), elsewhere()
    assert [process("take", key, "one") for key in ("taken", "begun")] == ["mine"] * 2
    assert process("begin", "begun", "one") == "True"
    assert [store.take(key, "two") for key in ("taken", "begun")] == ["running"] * 2
    process.signal(signal.SIGSTOP)
    assert [store.take(key, "two") for key in ("taken", "begun")] == ["running"] * 2
    process.signal(signal.SIGCONT)
    assert process("begin", "taken", "one") == "True"
    process.end()
    assert [eventually(lambda key=key: store.take(key, "two"), "left") for key in ("taken", "begun")] == ["left"] * 2  # type: ignore[misc]


def eventually(ask: Callable[[], Any], expected: Any) -> Any:
    """What is said in the end: a server notices after a moment that a client is dead."""
    end = time.monotonic() + 30
    while (said := ask()) != expected and time.monotonic() < end:
        time.sleep(0.05)
    return said


def test_of_many_that_take_at_once_one_has_it(url: str) -> None:
    """Also the first time, when all of them make the table; and where what they take is a dead owner's."""
    for owners in ([f"first {number}" for number in range(8)], [f"second {number}" for number in range(8)]):
        ended = at_once([lambda owner=owner: claims(url).take("key", owner) for owner in owners])  # type: ignore[misc]
        assert sorted(ended) == ["mine", *["running"] * 7]
        claims(url).end(owners[ended.index("mine")])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_model_resumes_once(url: str, asynchronous: bool) -> None:
    """With the URL alone: two runs at once, and one afterwards; one mail is sent, and the last run has the first one's messages."""
    sent: list[str] = []

    def send(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return f"sent to {to}"

    def model() -> ScriptedChatModel:
        def reply(messages: Any, **_: Any) -> Any:
            return "Done." if answered(messages) else asks(("send", {"to": "Anna"}), ("send", {"to": "Bert"}))

        return ScriptedChatModel(replies=reply, tools=[send], requires_approval=True, claim=claims(SecretStr(url)))

    history = [HumanMessage("Write."), *new_messages(model().invoke("Write."))]
    decisions = [call.approve() for call in pending_calls(history)]

    def resume() -> Any:
        return asyncio.run(model().aresume(history, decisions)) if asynchronous else model().resume(history, decisions)

    ended = [*at_once([resume] * 3), *at_once([resume])]
    runs = [one for one in ended if not isinstance(one, AlreadyResumedError)]
    assert {tuple(message.text for message in new_messages(run)) for run in runs} == {("sent to Anna", "sent to Bert", "Done.")}
    assert (sorted(sent), runs[-1]) == (["Anna", "Bert"], ended[-1])


def test_a_database_that_is_silent_raises_within_its_timeout(tmp_path: Path) -> None:
    """Another program holds it: nothing begins, and the same decisions go on afterwards."""
    url = f"sqlite:///{tmp_path}/claims.db"
    claims(url).take("key", "one")
    store = claims(url, timeout=0.05)
    with closing(sqlite3.connect(tmp_path / "claims.db", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OperationalError, match="locked"):
            store.take("another", "two")
        database.execute("ROLLBACK")
    assert store.take("another", "two") == "mine"


def test_a_silent_server_raises_within_the_timeout_too(postgres_server: Any) -> None:
    """PostgreSQL, with a table that another session has locked."""
    from sqlalchemy import create_engine, text

    url = postgres_server.create(f"claims_{os.urandom(4).hex()}")
    claims(url).take("key", "one")
    store = claims(url, timeout=0.2)
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as database:
        database.execute(text("LOCK TABLE autotools_claims IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(OperationalError, match="timeout"):
            store.take("another", "two")
        database.rollback()
    engine.dispose()
    assert store.take("another", "two") == "mine"


def test_the_url_is_a_secret(url: str) -> None:
    """It is in no repr, no error and no pickle; a pickle of a store without a password works."""
    store = claims("postgresql://anna:s3cret@127.0.0.1:1/none", timeout=1)
    with pytest.raises(OperationalError) as caught:
        store.take("key", "one")
    assert "s3cret" not in f"{store!r} {caught.value!r} {caught.value}" and "s3cret" not in repr(pickle.dumps(store))
    assert pickle.loads(pickle.dumps(claims(url))).take("key", "one") == "mine"


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("claims.db", "the URL of a database"),
        ("sqlite://", "a file that all processes share"),
        ("sqlite:///:memory:", "a file that all processes share"),
        ("mysql://localhost/claims", "SQLite or PostgreSQL, not in mysql"),
        ("postgresql+nothing://localhost/claims", "postgresql"),
    ],
)
def test_what_is_no_such_database_is_refused(url: str, match: str) -> None:
    """Where the store is made."""
    with pytest.raises(ConfigurationError, match=match):
        claims(url)


@pytest.mark.parametrize("timeout", [0, -1, True, "10"])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    """Greater than 0."""
    with pytest.raises(ConfigurationError, match="timeout must be a number of seconds"):
        claims("sqlite:///claims.db", timeout=timeout)


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a `ConfigurationError`."""
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ConfigurationError, match="extra `durable`"):
        claims("sqlite:///claims.db")


def test_a_relative_path_is_that_of_the_folder_where_the_store_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may change its folder afterwards."""
    monkeypatch.chdir(tmp_path)
    store = claims("sqlite:///claims.db")
    monkeypatch.chdir("/")
    assert store.take("key", "one") == "mine"
    assert (tmp_path / "claims.db").exists()


def test_files_of_ended_processes_are_removed(tmp_path: Path) -> None:
    """A process removes its own as it ends; that of a killed one goes when another process asks about it."""
    url = f"sqlite:///{tmp_path}/claims.db"
    polite, killed = Elsewhere(url), Elsewhere(url)
    assert (polite("take", "a", "one"), killed("take", "b", "two")) == ("mine", "mine")
    assert len([*tmp_path.glob("*.lock")]) == 2
    polite._process.communicate()
    killed.end()
    assert len([*tmp_path.glob("*.lock")]) == 1
    store = claims(url)
    assert (store.take("a", "three"), store.take("b", "three")) == ("mine", "mine")
    assert len([*tmp_path.glob("*.lock")]) == 1


_FORKS = """
import os, sys
from langchain_autotools import claims
store = claims(sys.argv[1])
assert store.take("parent", "one") == "mine"
if not (child := os.fork()):
    assert store.take("child", "two") == "mine" and store.take("parent", "two") == "running"
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print("forked", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_lock_of_its_own(url: str) -> None:
    """What it had is free once it has ended; what its parent has is the parent's still."""
    parent = subprocess.Popen([sys.executable, "-c", _FORKS, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None and parent.stdout.readline() == "forked\n"
    store = claims(url)
    assert (eventually(lambda: store.take("child", "three"), "mine"), store.take("parent", "three")) == ("mine", "running")
    parent.communicate()
    assert eventually(lambda: store.take("parent", "three"), "mine") == "mine"
