"""`mcp_server` with a URL: one session over streamable HTTP, with the caller's headers, whose secrets nobody is shown."""

import logging
import pickle
import traceback

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_autotools import mcp_server
from langchain_autotools.testing import ScriptedChatModel
from tests.support.mcp_http import McpHttp
from tests.unit.mcp_client.test_mcp_server import WAYS, asks, model, said


@pytest.mark.parametrize("way", WAYS)
def test_over_http(way: str) -> None:
    """One session, with the caller's headers on every request, ended at the end."""
    with McpHttp() as http:
        with mcp_server(http.url, headers={"Authorization": "Bearer key"}) as server:
            assert said(WAYS[way](model(server, asks("double", number=4), asks("double", number=5)))) == ["8", "10"]
            assert "key" not in repr(server)
        assert (http.sessions, http.ended, http.keys) == (1, 1, {"Bearer key"})


def test_the_secrets_of_an_address_are_shown_and_pickled_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Neither its password nor its query: in a repr, a log, the result of a call, or the error of a server that is gone."""
    with McpHttp() as http, caplog.at_level(logging.DEBUG, "langchain_autotools"):
        address = f"{http.url.replace('://', '://user:hush@')}?key=whisper"
        with mcp_server(address) as server:
            made = model(server, asks("double", number=4), asks("double", number=-1))
            shown = [*said(made.invoke("Go")), repr(server), repr(made), server.name]
            assert shown[0] == "8" and http.url in server.name
            with pytest.raises(pickle.PicklingError, match="a user and a query, which no pickle holds"):
                pickle.dumps(server)
    with pytest.raises(ValueError, match="cannot be opened") as gone:
        ScriptedChatModel(tools=[mcp_server(address, open_timeout=5)])
    shown += traceback.format_exception(gone.value)
    assert not any(secret in text for text in (*shown, caplog.text) for secret in ("hush", "whisper"))


def test_a_server_that_was_started_again_has_a_new_session() -> None:
    """It knows the old one no more, so the call was not begun: it is sent once more."""
    with McpHttp() as http, mcp_server(http.url) as server:
        made = model(server, asks("double", number=1), lambda *_, **__: http.forget() or asks("double", number=2))
        assert said(made.invoke("Go")) == ["2", "4"]
        assert (http.sessions, http.calls) == (2, [1, 2])


def test_a_connection_that_is_lost_during_a_call_is_not_used_for_it_again() -> None:
    """The server has begun it."""
    with McpHttp() as http, mcp_server(http.url) as server:
        results = said(model(server, asks("double", number=-1), asks("double", number=2)).invoke("Go"))
        assert "interrupted, outcome unknown" in results[0] and results[1] == "4"
        assert http.calls == [-1, 2]
