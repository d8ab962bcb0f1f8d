"""The kinds of bad MCP servers whose answers to calls are bad, or whose lists of tools."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.bad_mcp_servers import NEVER, NUMBER, SECRETS, TOOLS, UNKNOWN, Asked, Kind, Script

KINDS: dict[str, Kind] = {}
_told: Any
WAYS = ("stdio", "http", "events")
ALL = (*WAYS, "modern")
MANY = ("stdio", "events", "modern")
"""The ways of a server that sends several messages for one request."""


def add(name: str, told: Any = "ok", status: str = "success", *, over: tuple[str, ...] = WAYS, **more: Any) -> None:
    """Add a kind."""
    assert name not in KINDS, name
    KINDS[name] = Kind(name, told=told, status=status, over=over, **more)


def kind(name: str, told: Any = "ok", status: str = "success", *, at: str = "tools/call", **more: Any) -> Callable[[Script], Script]:
    """Make a script a kind: what it does at a method."""

    def made(script: Script) -> Script:
        add(name, told, status, scripts={at: script}, **{"over": MANY, **more})
        return script

    return made


def says(template: str | bytes) -> Script:
    """A script of one message; `ID` in it is the id of the request."""

    def script(asked: Asked) -> Iterator[bytes]:
        content = template.encode() if isinstance(template, str) else template
        yield content.replace(b"ID", json.dumps(asked.id).encode())

    return script


def result(body: str | bytes) -> bytes:
    """An answer with this result."""
    return b'{"jsonrpc":"2.0","id":ID,"result":' + (body.encode() if isinstance(body, str) else body) + b"}"


def text(content: str | bytes) -> bytes:
    """An answer with a text, which is JSON already."""
    return result(b'{"content":[{"type":"text","text":"' + (content.encode() if isinstance(content, str) else content) + b'"}]}')


OK = text("ok")

add("healthy", over=ALL)

# ---------------------------------------------------------------------------------------------- answers to calls: texts

for _name, _message, _told in [
    ("half a character", text(r"\ud83d ok"), "� ok"),
    ("half a character in capitals", text(r"ok \uDE00"), "ok �"),
    ("half characters in two blocks", result(r'{"content":[{"type":"text","text":"ok\ud83d"},{"type":"text","text":"\ude00"}]}'), "ok�"),
    ("half a character as a key", result(r'{"content":[{"type":"text","text":"ok"}],"structuredContent":{"\ud83d":1}}'), "ok"),
    ("whole characters as halves", text(r"\ud83d\ude00 ok"), "😀 ok"),
    ("bytes that are no text", text(b"\xff\xfe ok"), " ok"),
    ("a text that is cut through a character", text("😀".encode()[:2] + b" ok"), " ok"),
    ("half a character in bytes", text(b"\xed\xa0\xbd ok"), " ok"),
    ("a byte order mark", b"\xef\xbb\xbf" + OK, "ok"),
    ("white space around the answer", b"  \t" + OK + b" \r", "ok"),
    ("a tab that is not escaped", text(b"ok\tok"), "ok\tok"),
    ("a zero that is not escaped", text(b"ok\x00ok"), "ok"),
    ("line ends of Unicode", text("ok\u2028ok\u0085ok"), "ok\u2028ok\u0085ok"),
    ("five megabytes", text("x" * 5_000_000 + "ok"), "xxok"),
]:
    add(_name, _told, scripts={"tools/call": says(_message)})

# ---------------------------------------------------------------------------------------------- answers to calls: numbers and depth


def nested(levels: int) -> bytes:
    """An answer with data so deep."""
    data = "[" * levels + "]" * levels
    return result('{"content":[{"type":"text","text":"ok"}],"structuredContent":{"deep":' + data + "}}")


for _name, _message, _told in [
    ("data of 150 levels", nested(150), "ok"),
    ("data of 400 levels", nested(400), "ok"),
    ("data of 10,000 levels", nested(10_000), UNKNOWN),
    ("a large number", result('{"content":[],"structuredContent":{"ok":1e400}}'), "ok"),
    ("a number of 5,000 digits", result('{"content":[],"structuredContent":{"ok":' + "9" * 5_000 + "}}"), UNKNOWN),
    ("numbers that are none", result('{"content":[],"structuredContent":{"ok":[NaN,Infinity,-Infinity]}}'), "ok"),
]:
    add(_name, _told, "error" if _told == UNKNOWN else "success", over=ALL, scripts={"tools/call": says(_message)})

# ---------------------------------------------------------------------------------------------- answers to calls: results

_PICTURE = '{"type":"image","data":"aGk=","mimeType":"image/png"}'
for _name, _body, _told in [
    ("a text as the result", '"ok"', "ok"),
    ("a list as the result", '["ok"]', "ok"),
    ("null as the result", "null", ""),
    ("a number as the result", "42", "42"),
    ("a boolean as the result", "true", "true"),
    ("an empty result", "{}", ""),
    ("data without content", '{"answer":"ok"}', "ok"),
    ("content that is null", '{"content":null}', ""),
    ("content that is a text", '{"content":"ok"}', "ok"),
    ("content that is a number", '{"content":42}', "42"),
    ("content that is an object", '{"content":{"type":"text","text":"ok"}}', "ok"),
    ("content that is another object", '{"content":{"ok":1}}', "ok"),
    ("content of texts", '{"content":["ok","ok"]}', "ok"),
    ("content of nulls", '{"content":[null,{"type":"text","text":"ok"}]}', "ok"),
    ("blocks without a type", '{"content":[{"text":"ok"}]}', "ok"),
    ("blocks of an unknown type", '{"content":[{"type":"hologram","data":"ok"}]}', "ok"),
    ("a block whose type is a number", '{"content":[{"type":5,"text":"ok"}]}', "ok"),
    ("a text that is null", '{"content":[{"type":"text","text":null},{"type":"text","text":"ok"}]}', "ok"),
    ("a text that is a number", '{"content":[{"type":"text","text":42}]}', "42"),
    ("a picture that is no base64", '{"content":[{"type":"image","data":"ok!","mimeType":"image/png"}]}', "ok!"),
    ("a picture without its type", '{"content":[{"type":"image","data":"aGk="}]}', "aGk="),
    ("a picture of nothing", '{"content":[{"type":"image","data":"","mimeType":"image/png"},"ok"]}', "ok"),
    ("a picture whose type is a number", '{"content":[{"type":"image","data":"aGk=","mimeType":7}]}', "aGk="),
    ("a picture whose data is a list", '{"content":[{"type":"image","data":["ok"],"mimeType":"image/png"}]}', "ok"),
    ("a resource of nothing", '{"content":[{"type":"resource"},"ok"]}', "ok"),
    ("a resource that is a text", '{"content":[{"type":"resource","resource":"ok"}]}', "ok"),
    ("a file that is no base64", '{"content":[{"type":"resource","resource":{"uri":"a://ok","blob":"?"}}]}', "ok"),
    ("a file whose type is a number", '{"content":[{"type":"resource","resource":{"uri":"a://b","blob":"aGk=","mimeType":5}},"ok"]}', "ok"),
    ("a file whose name is a number", '{"content":[{"type":"resource","resource":{"uri":5,"blob":"aGk="}},"ok"]}', "ok"),
    ("a link without an address", '{"content":[{"type":"resource_link","name":"ok"}]}', "ok"),
    ("a link whose address is a number", '{"content":[{"type":"resource_link","name":"ok","uri":5}]}', "ok"),
    ("annotations that are none", '{"content":[{"type":"text","text":"ok","annotations":"x","_meta":5}],"_meta":"x"}', "ok"),
    ("data that is a text", '{"content":[],"structuredContent":"ok"}', "ok"),
    ("data that is a list", '{"content":[],"structuredContent":["ok"]}', "ok"),
    ("data that is null", '{"content":[{"type":"text","text":"ok"}],"structuredContent":null}', "ok"),
    ("data without a text", '{"structuredContent":{"answer":"ok"}}', "ok"),
    ("data without a text, no error", '{"structuredContent":{"answer":"ok"},"isError":false}', "ok"),
    ("an error flag that is null", '{"content":[{"type":"text","text":"ok"}],"isError":null}', "ok"),
    ("an error flag that is the text false", '{"content":[{"type":"text","text":"ok"}],"isError":"false"}', "ok"),
    ("a result of a later protocol", '{"content":[{"type":"text","text":"ok"}],"resultType":"later","ttlMs":"x"}', "ok"),
]:
    add(_name, _told, scripts={"tools/call": says(result(_body))})

for _name, _body, _told in [
    ("an error of data alone", '{"isError":true,"structuredContent":{"why":"ok"}}', "ok"),
    ("an error with a picture", '{"isError":true,"content":[' + _PICTURE + ',{"type":"text","text":"ok"}]}', "ok"),
    ("an error of a picture alone", '{"isError":true,"content":[' + _PICTURE + "]}", ""),
    ("an error of nothing", '{"isError":true,"content":[]}', ""),
    ("an error without content", '{"isError":true}', ""),
    ("an error whose content is a text", '{"isError":true,"content":"ok"}', "ok"),
    ("an error flag that is a text", '{"isError":"true","content":[{"type":"text","text":"ok"}]}', "ok"),
    ("an error flag that is a number", '{"isError":1,"content":[{"type":"text","text":"ok"}]}', "ok"),
    ("an error result with half a character", r'{"isError":true,"content":[{"type":"text","text":"\ud83d ok"}]}', "� ok"),
]:
    add(_name, _told, "error", over=ALL, scripts={"tools/call": says(result(_body))})


def promised(schema: Any) -> list[Any]:
    """The tools, the bad one with a schema of its results."""
    return [{**TOOLS[0], "outputSchema": schema}, TOOLS[1]]


_SCHEMA = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
for _name, _given, _body in [
    ("a result without the data that its schema promises", _SCHEMA, '{"content":[{"type":"text","text":"ok"}]}'),
    ("a result that breaks its schema", _SCHEMA, '{"content":[{"type":"text","text":"ok"}],"structuredContent":{"size":"x"}}'),
    ("a schema of results without a type", {"properties": {}}, '{"content":[{"type":"text","text":"ok"}],"structuredContent":{}}'),
    ("a schema of results that is a text", "object", '{"content":[{"type":"text","text":"ok"}]}'),
    ("a schema of results that is none", {"type": "objekt"}, '{"content":[{"type":"text","text":"ok"}],"structuredContent":{}}'),
    ("a schema of results that refers to nothing", {"type": "object", "$ref": "#/no"}, '{"content":[{"type":"text","text":"ok"}]}'),
]:
    add(_name, over=ALL, tools=promised(_given), scripts={"tools/call": says(result(_body))})

# ---------------------------------------------------------------------------------------------- answers to calls: envelopes

for _name, _message, _told in [
    ("an answer without a version", b'{"id":ID,"result":{"content":[{"type":"text","text":"ok"}]}}', "ok"),
    ("an answer of another version", OK.replace(b"2.0", b"1.0"), "ok"),
    ("an answer whose version is a number", OK.replace(b'"2.0"', b"2.0"), "ok"),
    ("an answer with more keys", OK.replace(b'"id"', b'"extra":[],"id"'), "ok"),
    ("an answer with an error of null", OK.replace(b'"id"', b'"error":null,"id"'), "ok"),
    ("an answer whose id is a text", OK.replace(b"ID", b'"ID"'), "ok"),
    ("an answer whose id has a fraction", OK.replace(b"ID", b"ID.0"), "ok"),
    ("an answer in a batch", b"[" + OK + b"]", "ok"),
    ("an answer twice in a batch", b"[" + OK + b"," + OK.replace(b"ok", b"no") + b"]", "ok"),
    ("an answer that names its method", OK.replace(b'"id"', b'"method":"tools/call","id"'), "ok"),
    ("an answer with parameters", OK.replace(b'"id"', b'"params":{},"id"'), "ok"),
]:
    add(_name, _told, scripts={"tools/call": says(_message)})


def error(body: str) -> bytes:
    """An answer with this error."""
    return b'{"jsonrpc":"2.0","id":ID,"error":' + body.encode() + b"}"


for _name, _message, _told in [
    ("an error of the number that the SDK uses for an end", error('{"code":-32000,"message":"no luck"}'), "no luck"),
    ("an error in the SDK's words for an end", error('{"code":-32000,"message":"Connection closed"}'), "Connection closed"),
    ("an error in the SDK's words for a session", error('{"code":-32600,"message":"Session terminated"}'), "Session terminated"),
    ("an error in the SDK's words for a timeout", error('{"code":-32001,"message":"Request timed out"}'), "Request timed out"),
    ("an error whose code is a text", error('{"code":"E_NO","message":"no luck"}'), "no luck"),
    ("an error whose code is a fraction", error('{"code":-32000.5,"message":"no luck"}'), "no luck"),
    ("an error whose code is large", error('{"code":' + "9" * 30 + ',"message":"no luck"}'), "no luck"),
    ("an error without a code", error('{"message":"no luck"}'), "no luck"),
    ("an error without words", error('{"code":-32603,"data":"no luck"}'), "no luck"),
    ("an error whose words are null", error('{"code":-32603,"message":null,"data":"no luck"}'), "no luck"),
    ("an error whose words are an object", error('{"code":-32603,"message":{"text":"no luck"}}'), "no luck"),
    ("an error with data", error('{"code":-32603,"message":"no luck","data":{"deep":[[[1]]]}}'), "no luck"),
    ("an error that is a text", error('"no luck"'), "no luck"),
    ("an error that is a list", error('["no luck"]'), "no luck"),
    ("an error that is a number", error("42"), "42"),
    ("an error that is null", error("null"), ""),
    ("an error with a result of null", error('{"code":-32603,"message":"no luck"}').replace(b'"id"', b'"result":null,"id"'), "no luck"),
    ("an error with half a character", error(r'{"code":-32603,"message":"no luck \ud83d"}'), "no luck �"),
    ("an answer without a result or an error", b'{"jsonrpc":"2.0","id":ID}', UNKNOWN),
    ("an answer with a result that is misspelt", b'{"jsonrpc":"2.0","id":ID,"reslut":{}}', UNKNOWN),
    ("half a line", OK[:40], UNKNOWN),
    ("half a line, which ends in the result", OK[:-12], UNKNOWN),
    ("half a line, without an id", b'{"jsonrpc":"2.0","result":{"content":[{"type":"te', UNKNOWN),
    ("an answer in single quotes", OK.replace(b'"', b"'"), {"stdio": NEVER, "modern": NEVER, "": UNKNOWN}),
]:
    add(_name, _told, "error", scripts={"tools/call": says(_message)})

for _name, _message in [
    ("an answer with a wrong id", OK.replace(b"ID", b"ID977")),
    ("an answer whose id is null", OK.replace(b"ID", b"null")),
    ("an answer whose id is a list", OK.replace(b"ID", b"[ID]")),
    ("an answer whose id is true", OK.replace(b"ID", b"true")),
    ("an answer without an id", OK.replace(b'"id":ID,', b"")),
]:
    add(_name, NEVER, "error", over=("stdio", "modern"), scripts={"tools/call": says(_message)})
    add(f"{_name}, over HTTP", scripts={"tools/call": says(_message)}, over=("http", "events"))


def secrets(asked: Asked) -> str:
    """The secrets that the server has been given."""
    return SECRETS["env"] if asked.exchange is None else " ".join(SECRETS[name] for name in ("user", "password", "query", "header"))


@kind("an error that repeats its secrets", "no luck", "error", over=WAYS)
def _(asked: Asked) -> Iterator[str]:
    yield asked.error(f"no luck with {secrets(asked)}")


@kind("no answer", NEVER, "error", over=WAYS)
def _(asked: Asked) -> Iterator[str]:
    yield from ()


# ---------------------------------------------------------------------------------------------- lists


def lists(name: str, tools: Any, told: Any = "ok", **more: Any) -> None:
    """Add a kind whose list of tools is this."""
    add(name, told, scripts={"tools/list": lambda asked: [asked.result({"tools": tools})]}, over=("stdio", "http", "modern"), **more)


def odd(**keys: Any) -> list[Any]:
    """The tools, and an odd one."""
    return [*TOOLS, {"name": "odd", "inputSchema": NUMBER, **keys}]


lists("tools without names", [*TOOLS, {"inputSchema": NUMBER}, {"name": None}, {"name": 5}, {"name": []}, {"name": {}}])
lists("tools that are none", [None, "odd", 5, [], {}, *TOOLS])
lists("a schema that is empty", odd(inputSchema={}))
lists("a schema of another type", odd(inputSchema={"type": "string"}))


@kind("a list that is empty", told=None, at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield asked.result({})


@kind("a list that is an object", told=None, at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield asked.result({"tools": {"bad": TOOLS[0]}})


@kind("a list that is null", told=None, at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield asked.result({"tools": None})


@kind("a list of tools that is the whole result", told=None, at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield asked.result(TOOLS)


def cursor(value: Any) -> Script:
    """A script that lists the tools, with this cursor."""

    def script(asked: Asked) -> Iterator[str]:
        yield asked.result({"tools": TOOLS, "nextCursor": value})

    return script


@kind("pages without an end", at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    page = int(asked.params.get("cursor") or 0)
    yield asked.result({"tools": [] if page else TOOLS, "nextCursor": str(page + 1)})


@kind("a page that stays", at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield asked.result({"tools": [] if asked.params.get("cursor") else TOOLS, "nextCursor": "second"})


@kind("pages that go round", at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    following = {"": "a", "a": "b", "b": "c", "c": "a"}[asked.params.get("cursor") or ""]
    yield asked.result({"tools": [] if asked.params.get("cursor") else TOOLS, "nextCursor": following})


for _name, _cursor in [("a number", 5), ("an object", {"page": 2}), ("an empty text", ""), ("null", None), ("false", False)]:
    add(f"a cursor that is {_name}", over=("stdio", "http", "modern"), scripts={"tools/list": cursor(_cursor)})

CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'


@kind("3,000 changes of the list", over=("stdio", "events"))
def _(asked: Asked) -> Iterator[str]:
    yield from [CHANGED] * 3_000
    yield asked.text()


@kind("a list that changes while it is asked for", at="tools/list", over=("stdio", "events"))
def _(asked: Asked) -> Iterator[str]:
    if asked.server.counts["tools/list"] < 3:
        yield CHANGED
    yield asked.result({"tools": TOOLS})


def fails_later(asked: Asked) -> Iterator[str]:
    """List the tools once; then fail."""
    yield asked.result({"tools": TOOLS}) if asked.server.counts["tools/list"] == 1 else asked.error(f"no list for {secrets(asked)}")


def is_silent_later(asked: Asked) -> Iterator[str]:
    """List the tools once; then never."""
    if asked.server.counts["tools/list"] == 1:
        yield asked.result({"tools": TOOLS})


def is_empty_later(asked: Asked) -> Iterator[str]:
    """List the tools once; then none."""
    yield asked.result({"tools": TOOLS} if asked.server.counts["tools/list"] == 1 else {"tools": "none"})


def change(asked: Asked) -> Iterator[str]:
    """Say that the list has changed; then answer."""
    yield CHANGED
    yield asked.text()


for _name, _script in [("fails", fails_later), ("is not answered", is_silent_later), ("is none", is_empty_later)]:
    add(f"a list that {_name} once it has changed", over=("stdio", "events"), scripts={"tools/list": _script, "tools/call": change})


@kind("a list that fails", at="tools/list", over=("stdio", "http", "modern"), refused="no list today")
def _(asked: Asked) -> Iterator[str]:
    yield asked.error("no list today")


@kind("a list that is not answered", at="tools/list", over=("stdio", "http", "modern"), refused="Timeout")
def _(asked: Asked) -> Iterator[str]:
    yield from ()


@kind("half a list", at="tools/list", over=("stdio", "http", "modern"), refused="be read")
def _(asked: Asked) -> Iterator[str]:
    yield asked.result({"tools": TOOLS})[:-30]


@kind("a list with half a character", at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield asked.result({"tools": [*TOOLS, {**TOOLS[0], "name": "odd", "description": "\ud83d"}]})


@kind("a list of 5 megabytes", at="tools/list", over=("stdio", "http", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield asked.result({"tools": [*TOOLS, {**TOOLS[0], "name": "odd", "description": "x" * 5_000_000}]})


# ---------------------------------------------------------------------------------------------- definitions of tools


def _deep(levels: int) -> dict[str, Any]:
    """A schema so deep."""
    return {"type": "array", "items": _deep(levels - 1) if levels else {"type": "string"}}


lists("a tool without a schema", [*TOOLS, {"name": "odd"}])
lists("a schema that is null", odd(inputSchema=None))
lists("a schema that is a text", odd(inputSchema="object"))
lists("a schema that is a list", odd(inputSchema=[]))
lists("a schema that refers to nothing", odd(inputSchema={"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}}))
lists("a schema that refers to itself", odd(inputSchema={"type": "object", "properties": {"a": {"$ref": "#"}}}))
lists("a schema whose properties are a list", odd(inputSchema={"type": "object", "properties": ["a"], "required": "a"}))
lists("a schema of an unknown type", odd(inputSchema={"type": "objekt", "properties": {"a": {"type": 5}}}))
lists("a schema of 150 levels", odd(inputSchema={"type": "object", "properties": {"a": _deep(150)}}))
lists("a description that is a number", odd(description=5))
lists("annotations that are a text", odd(annotations="read only", title=5, icons="x", execution=[], _meta=5))
lists("a tool twice", [*TOOLS, *odd()[2:], *odd()[2:]])
lists("tools that are called alike", [*TOOLS, *odd()[2:], {"name": "odd", "inputSchema": {"type": "object"}, "description": "Another."}])
lists("an empty name", [*TOOLS, {"name": "", "inputSchema": NUMBER}])
lists("a name of 10,000 characters", [*TOOLS, {"name": "x" * 10_000, "inputSchema": NUMBER}])
lists("a name with half a character", [*TOOLS, {"name": "odd\ud83d", "inputSchema": NUMBER}])
lists("a name of line ends", [*TOOLS, {"name": "odd\n\r\t\0", "inputSchema": NUMBER}])
