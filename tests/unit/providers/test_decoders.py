"""`SSEDecoder`, `NDJSONDecoder` and `parse_json`: bytes to events, cut anywhere and written carelessly."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_autotools.errors import StreamError
from langchain_autotools.providers._transport.reader import Event, NDJSONDecoder, SSEDecoder, parse_json

Events = list[tuple[str | None, bytes]]


def decode(body: bytes | Sequence[bytes], decoder: SSEDecoder | NDJSONDecoder | None = None) -> list[Event]:
    """All events of a body, or of its pieces."""
    decoder = decoder or SSEDecoder()
    events = [event for piece in ([body] if isinstance(body, bytes) else body) for event in decoder.feed(piece)]
    return events + decoder.flush()


SSE: list[tuple[str, bytes, Events]] = [
    ("an event ends with a blank line", b'data: {"a":1}\n\ndata: [DONE]\n\n', [(None, b'{"a":1}'), (None, b"[DONE]")]),
    ("the space after the colon may be missing", b"data:x\n\n", [(None, b"x")]),
    ("one space alone is taken off", b"data:  x \n\n", [(None, b" x ")]),
    ("returns and line feeds end lines", b"data: x\r\n\r\ndata: y\r\rdata: z\n\n", [(None, b"x"), (None, b"y"), (None, b"z")]),
    ("comments are left out", b": OPENROUTER PROCESSING\n\ndata: x\n: more\n\n", [(None, b"x")]),
    ("an event has a name", b"event: ping\ndata: x\n\ndata: y\n\n", [("ping", b"x"), (None, b"y")]),
    ("a name without data is no event", b"event: ping\n\ndata: y\n\n", [(None, b"y")]),
    ("ids and retry times are left out", b"id: 7\nretry: 10\ndata: x\n\n", [(None, b"x")]),
    ("data on several lines is joined", b"data: a\ndata: b\n\n", [(None, b"a\nb")]),
    ("data without a value is nothing", b"data:\n\ndata: \n\ndata\n\ndata: x\n\n", [(None, b"x")]),
    ("an empty line may stand within data", b"data: a\ndata:\ndata: b\n\n", [(None, b"a\n\nb")]),
    ("the last event needs no blank line", b"data: x\n\ndata: y", [(None, b"x"), (None, b"y")]),
    (
        "documents need no blank line between them",
        b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n',
        [(None, b'{"a":1}'), (None, b'{"b":2}'), (None, b"[DONE]")],
    ),
    ("a document on several lines stays whole", b'data: {"a":\ndata: {}}\n\n', [(None, b'{"a":\n{}}')]),
    ("a byte order mark is left out", b"\xef\xbb\xbfdata: x\n\n", [(None, b"x")]),
    ("blank lines in front are left out", b"\n\n\r\ndata: x\n\n", [(None, b"x")]),
    ("a JSON body is one event", b'{"choices":\n [{"message": {}}]}\n', [(None, b'{"choices":\n [{"message": {}}]}')]),
    ("a JSON list is one event", b'[{"a":1},\n{"b":2}]', [(None, b'[{"a":1},\n{"b":2}]')]),
    ("JSON lines are an event each", b'\n{"a":1}\n\n{"b":2}\n', [(None, b'{"a":1}'), (None, b'{"b":2}')]),
    ("a broken body is one event", b'{"a":1', [(None, b'{"a":1')]),
    ("nothing is no event", b"", []),
    ("other text is no event", b"<html>\n<p>data: x</p>\n", []),
]


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in SSE], ids=[row[0] for row in SSE])
def test_server_sent_events(body: bytes, expected: Events) -> None:
    """A body of server-sent events, or what servers send in its place, comes out as events (wire quirks E-11, E-12)."""
    assert decode(body) == expected


@pytest.mark.parametrize("body", [row[1] for row in SSE], ids=[row[0] for row in SSE])
def test_an_event_stream_may_be_cut_anywhere(body: bytes) -> None:
    """Single bytes, and every cut in two, give the same events."""
    whole = decode(body)
    assert decode([body[at : at + 1] for at in range(len(body))]) == whole
    for at in range(len(body) + 1):
        assert decode([body[:at], b"", body[at:]]) == whole


LINES = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b": c",
        b"event: e",
        b'{"a":1}',
        "é€😀".encode(),
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n",
        b" ",
        b"x",
        b"\xef\xbb\xbf",
        b"[DONE]",
        b'data: {"b":2}\n\n',
        b'data: {"d":4}\n',
        b'event: e\ndata: {"c":3}\n\n',
        b'event: \ndata: {"c":3}\n\n',
    ]
)


@given(st.lists(LINES, max_size=30).map(b"".join), st.data())
def test_any_pieces_give_the_same_events(body: bytes, data: st.DataObject) -> None:
    """However the bytes of a stream are cut, into single ones too, its events are the same, of either kind."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    single = [body[at : at + 1] for at in range(len(body))]
    assert decode(pieces) == decode(single) == decode(body)
    assert decode(pieces, NDJSONDecoder()) == decode(single, NDJSONDecoder()) == decode(body, NDJSONDecoder())


def test_an_event_comes_with_its_last_byte() -> None:
    """An event is given out as soon as its blank line is there, not with the next one."""
    decoder = SSEDecoder()
    assert decoder.feed(b"data: x\n") == []
    assert decoder.feed(b"\n") == [(None, b"x")]
    assert decoder.feed(b"data: y\r\n\r") == [(None, b"y")]
    assert decoder.feed(b"\ndata: z\n\n") == [(None, b"z")]
    assert decoder.flush() == []


def test_no_document_is_lost_after_events_of_the_usual_form() -> None:
    """A server that leaves out a blank line in the middle of its stream: each document still comes, and as soon as the next one begins."""
    decoder = SSEDecoder()
    assert decoder.feed(b'data: {"a":1}\n\n') == [(None, b'{"a":1}')]
    assert decoder.feed(b'data: {"b":2}\n\ndata: {"c":3}\ndata: {"d":4}\n') == [(None, b'{"b":2}'), (None, b'{"c":3}')]
    assert decoder.feed(b"\n") == [(None, b'{"d":4}')]


NDJSON: list[tuple[str, bytes, list[bytes]]] = [
    ("a document on each line", b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
    ("the last line needs no end", b'{"a":1}\r\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
    ("blank lines are left out", b'\n{"a":1}\n \n\r\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
    ("a document on several lines stays whole", b'{\n "a": {\n }\n}\n', [b'{\n"a": {\n}\n}']),
    ("what is no JSON is handed on", b"oops\n", [b"oops"]),
    ("comments are left out", b': wait\n{"a":1}\n', [b'{"a":1}']),
]


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in NDJSON], ids=[row[0] for row in NDJSON])
def test_json_lines(body: bytes, expected: list[bytes]) -> None:
    """A body of JSON lines comes out as documents."""
    assert decode(body, NDJSONDecoder()) == [(None, data) for data in expected]


def test_parse_json_reads_what_servers_write() -> None:
    """Text or bytes; raw control characters and bytes that are no UTF-8 are let through."""
    assert parse_json(b'{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert parse_json('{"a":"é"}') == {"a": "é"}
    assert parse_json(b'{"a":"x\ny"}') == {"a": "x\ny"}
    assert parse_json(b'{"a":"\xff"}') == {"a": "\ufffd"}


def test_half_a_character_is_kept_only_where_the_other_half_may_follow() -> None:
    """Half a surrogate pair becomes U+FFFD, save in argument text, whose fragments are joined before they are read."""
    assert parse_json(b'{"content":"\\ud83d","list":["\\ude00"],"\\ud83d":1}') == {"content": "\ufffd", "list": ["\ufffd"], "\ufffd": 1}
    assert parse_json(b'{"function":{"arguments":"\\ud83d"}}') == {"function": {"arguments": "\ud83d"}}
    assert parse_json(b'{"content":"\\ud83d\\ude00"}') == {"content": "😀"}


@pytest.mark.parametrize("data", [b"", b"<html>", b'{"a":1', b'{"a":1}{"b":2}', b"[" * 200_000, "\ud800"])
def test_parse_json_says_what_it_could_not_read(data: bytes | str) -> None:
    """What is no JSON is a stream error that shows how it begins."""
    with pytest.raises(StreamError, match="not JSON"):
        parse_json(data)
