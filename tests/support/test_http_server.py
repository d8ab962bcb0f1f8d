"""The loopback server serves exact pieces, keeps connections alive, records requests and sees clients leave."""

import httpx
import pytest

from tests.support.http_server import Drop, Exchange, Gate, HttpReply, LoopbackServer, Part, Pause


def serving(*parts: Part, **how: object) -> LoopbackServer:
    """A server that gives this reply to everybody."""
    return LoopbackServer(lambda exchange: HttpReply(parts, **how))  # type: ignore[arg-type]


def test_pieces_arrive_as_they_were_cut() -> None:
    """Each piece of a chunked body reaches the client as one piece, whatever the sockets do."""
    pieces = [b"a", b"bc", b"\xc3", b"\xa9", b"def"]
    with serving(*pieces) as server, httpx.stream("GET", server.address) as response:
        assert list(response.iter_raw()) == pieces


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_framings_carry_the_same_body(framing: str) -> None:
    """A client reads the same body however its end is told."""
    with serving(b"one ", b"two", framing=framing, status=429, headers={"retry-after": "7"}) as server:
        response = httpx.get(server.address)
    assert (response.status_code, response.headers["retry-after"], response.text) == (429, "7", "one two")


def test_requests_are_recorded_and_connections_kept() -> None:
    """Every request is kept as it came; one connection carries several."""
    with serving(b"ok") as server, httpx.Client() as client:
        client.post(f"{server.address}/a", content=b'{"x": "\xc3\xa9"}', headers={"X-Mark": "1"})
        client.post(f"{server.address}/b", content=iter([b"pie", b"ces"]))
        first, second = server.exchanges
        assert (first.method, first.path, first.headers["x-mark"], first.body, first.json) == (
            "POST",
            "/a",
            "1",
            b'{"x": "\xc3\xa9"}',
            {"x": "é"},
        )
        assert (second.path, second.body) == ("/b", b"pieces")
        assert server.connections == 1


def test_a_drop_is_an_error_and_a_short_close_is_not() -> None:
    """A torn connection is noticed by HTTP; a body that is told by the connection's end may stop anywhere."""
    with serving(b"half", Drop()) as server, pytest.raises(httpx.HTTPError):
        httpx.get(server.address)
    with serving(b"half", framing="close") as server:
        assert httpx.get(server.address).text == "half"


def test_a_gate_holds_the_reply_back() -> None:
    """What comes before a gate is delivered; what comes behind it only once the gate is open."""
    gate = Gate()
    with serving(b"before", gate, b"after") as server, httpx.stream("GET", server.address) as response:
        pieces = response.iter_raw()
        assert next(pieces) == b"before"
        assert gate.reached.wait(10)
        gate.open()
        assert list(pieces) == [b"after"]
        assert server.exchanges[0].finished.wait(10)
        assert not server.exchanges[0].disconnected.is_set()


@pytest.mark.parametrize("obstacle", [Gate(), Pause(60)], ids=["gate", "pause"])
def test_a_client_that_leaves_is_seen(obstacle: Part) -> None:
    """The server notices the end of the client's connection while it waits, and sends nothing more."""
    with serving(b"before", obstacle, b"after") as server:
        with httpx.stream("GET", server.address) as response:
            assert next(response.iter_raw()) == b"before"
        exchange: Exchange = server.exchanges[0]
        assert exchange.disconnected.wait(10)
        assert exchange.ended.wait(10)
        assert not exchange.finished.is_set()


def test_leaving_the_server_ends_it() -> None:
    """The server stops at once, even with a client that waits at a gate."""
    with serving(Gate()) as server, httpx.Client() as client:
        request = client.build_request("GET", server.address)
        response = client.send(request, stream=True)
        server.stop()
        with pytest.raises(httpx.HTTPError):
            response.read()
        response.close()
