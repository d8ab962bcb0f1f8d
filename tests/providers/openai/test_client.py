"""What a ChatOpenAI keeps of its clients and of what a server refused: per process and loop, shared by copies, in no pickle."""

import asyncio
import copy
import gc
import os
import pickle
import weakref

import pytest

from langchain_autotools import ChatOpenAI, __version__
from langchain_autotools.addresses import public_url
from langchain_autotools.providers._encode.encoder import origin_of
from langchain_autotools.providers._transport.clients import PerLoopCache
from langchain_autotools.providers.openai.chat_model import CompatibilityKey, LearnedCompatibility


class Client:
    """Something that is made once."""

    closed = False

    def close(self) -> None:
        """Close it."""
        self.closed = True


def test_a_client_is_made_once() -> None:
    """The same key gives the same client, another key another."""
    clients = PerLoopCache()
    first = clients.get("a", Client)
    assert clients.get("a", Client) is first
    assert clients.get("b", Client) is not first


def test_a_forked_process_makes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child must not write into its parent's connections."""
    clients = PerLoopCache()
    first = clients.get("a", Client)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert clients.get("a", Client) is not first


def test_each_event_loop_has_its_own() -> None:
    """The client of a loop that has ended is forgotten, even if a new loop takes its place in memory."""
    clients = PerLoopCache()
    seen: list[weakref.ref[Client]] = []

    async def get() -> Client:
        client = clients.get("a", Client, asyncio.get_running_loop())
        assert clients.get("a", Client, asyncio.get_running_loop()) is client
        return client

    for _ in range(5):
        client = asyncio.run(get())
        assert all(reference() is not client for reference in seen)
        seen.append(weakref.ref(client))
    del client
    clients.get("b", Client)
    gc.collect()
    assert [reference() for reference in seen] == [None] * 5


def test_closing_closes_what_threads_use() -> None:
    """A loop's clients are closed by their loop."""
    clients = PerLoopCache()
    threads = clients.get("a", Client)
    loop = asyncio.new_event_loop()
    tasks = clients.get("a", Client, loop)
    clients.close()
    assert (threads.closed, tasks.closed) == (True, False)
    assert clients.get("a", Client) is not threads
    loop.close()


def test_copies_share_and_pickles_are_empty() -> None:
    """So that copies of a model use its connections, and no connection is pickled."""
    clients = PerLoopCache()
    client = clients.get("a", Client)
    assert copy.copy(clients) is copy.deepcopy(clients) is clients
    assert pickle.loads(pickle.dumps(clients)).get("a", Client) is not client


def test_what_is_learnt_is_bounded() -> None:
    """A server that learns for each customer's key keeps the last thousand."""
    learned = LearnedCompatibility()
    keys = [CompatibilityKey("o", True, (), account=str(number)) for number in range(1_002)]
    first = learned.get(keys[0])
    assert learned.get(keys[0]) is first
    for key in keys:
        learned.get(key)
    assert learned.get(keys[-1]) is learned.get(keys[-1])
    assert learned.get(keys[0]) is not first


class Refused(Exception):
    """A server's refusal."""

    status_code = 400
    body = "content must be a string"


def test_what_another_request_learned_is_used() -> None:
    """Two requests are refused at once: the second writes in the form that the first found."""
    learned, key = LearnedCompatibility(), CompatibilityKey("o", True, ())
    used = learned.get(key)
    found = learned.other(key, [used], Refused(), b"{}")
    assert found is not None
    assert found.null_content is False
    learned.keep(key, found)
    assert learned.other(key, [used], Refused(), b"{}") is found
    assert learned.other(key, [found], Refused(), b"{}") is None


class Missed(Exception):
    """A refusal because something did not come back."""

    status_code = 400
    body = "The `reasoning_content` in the thinking mode must be passed back to the API."


def test_what_a_server_misses_is_sent_from_then_on() -> None:
    """A refusal that asks for state is not taken for one that refuses it, and is believed once."""
    learned, key = LearnedCompatibility(), CompatibilityKey("o", True, ())
    found = learned.other(key, [learned.get(key)], Missed(), b"{}")
    assert found is not None
    assert (found.demand, found.omit) == ({"reasoning_content"}, frozenset())
    learned.keep(key, found)
    assert learned.other(key, [found], Missed(), b"{}") is None


def test_an_origin_is_the_endpoint_and_the_model() -> None:
    """Credentials, query and a trailing slash make no difference; another host, path or model does."""
    same = {origin_of(url, "m") for url in ("https://a/v1", "https://a/v1/", "https://u:p@a/v1?key=1")}
    assert len(same) == 1
    others = {origin_of(url, model) for url, model in (("https://b/v1", "m"), ("https://a/v2", "m"), ("https://a/v1", "n"), (None, "m"))}
    assert len(others | same) == 5
    assert (public_url("https://u:p@a/v1/?key=1"), public_url(None)) == ("https://a/v1", "")


def test_the_version_is_told_to_traces() -> None:
    """The version is in the metadata of every run, as LangChain's packages write theirs."""
    assert (ChatOpenAI(model="any").metadata or {})["lc_versions"]["langchain-autotools-chat"] == __version__
