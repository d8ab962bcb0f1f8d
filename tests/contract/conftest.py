"""Fixtures of the contract: a wire, a way to run, and a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.contract.supports import facts
from tests.contract.talk import WAYS, Ran, Run, Start, Talk, run_in
from tests.contract.wires import ROWS, Wire
from tests.support.pairwise import pairwise
from tests.support.scripted_server import Script, ScriptedServer

OWN = ("openai-chat", "openai-responses", "anthropic", "ollama", "google")
"""The rows whose wire is read and written by code of their own. The others are data for it: an address, a dialect."""
_DATA = ("strict", "name", "choice", "schema_is", "structured", "bound", "from_every_row")
"""What the names of tests have whose values meet the data of a row: its dialect of schemas, its choices, its own histories."""
TURNS = ("stream", "ainvoke")
"""The ways that those others take by turns: a stream and a whole body, in a thread and on an event loop."""
OPPOSITES = (TURNS, ("invoke", "astream"))
"""The ways that a wire's own row takes by turns, the next test the other two: each has a stream, a whole body, a thread and a loop."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A behaviour runs where it can differ: in two ways over a wire's own row, in one way over others; the rest is `exhaustive`.

    Of what a test has beside row and way (methods, schemas, replies) each value meets each wire's own row and each of its ways, not both at
    once; rows that share a wire take the values by turns where their data makes no difference.
    """
    chosen: dict[str, list[Any]] = {}
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if not isinstance(row := params.get("wire"), Wire) or item.get_closest_marker("exhaustive"):
            continue
        if _differs(row, getattr(item, "originalname", ""), params):
            chosen.setdefault(item.nodeid.partition("[")[0], []).append(item)
        else:
            item.add_marker(pytest.mark.exhaustive)
    for name, cases in chosen.items():
        shared = [case for case in cases if case.callspec.params["wire"].name not in OWN and not any(word in name for word in _DATA)]
        paired = [case for case in cases if case not in shared]
        kept = pairwise([dict(enumerate(case.callspec._idlist)) for case in paired])  # the parts of an id: `indices` number whole products
        for case in [*(case for place, case in enumerate(paired) if place not in kept), *_out_of_turn(shared)]:
            case.add_marker(pytest.mark.exhaustive)


def _out_of_turn(cases: list[Any]) -> list[Any]:
    """Those that are left over where each row takes one of its cases, the next row the next one."""
    rows: dict[str, list[Any]] = {}
    for case in cases:
        rows.setdefault(case.callspec.params["wire"].name, []).append(case)
    return [case for turn, own in enumerate(rows.values()) for place, case in enumerate(own) if place != turn % len(own)]


def _differs(row: Wire, test: str, params: Mapping[str, Any]) -> bool:
    """Whether a test with these parameters may find over this row what no other finds.

    A row that shares its wire takes the ways by turns, repeats few times what a wire's own row repeats many times, and is given its own
    histories. Those of a wire's own row and of a row that shares a wire meet by turns.
    """
    origin = params.get("origin", row.name)
    if row.name in OWN:
        ways = OPPOSITES[(OWN.index(row.name) + len(test)) % len(OPPOSITES)]
        return params.get("way", ways[0]) in ways and params.get("times") != "few" and (origin in OWN or _turn(origin) == row.name)
    turn = TURNS[(ROWS.index(row) + len(test)) % len(TURNS)]
    return params.get("way", turn) == turn and params.get("times") != "many" and origin in {_turn(row.name), row.name}


def _turn(shared: str) -> str:
    """The wire's own row that a row without one meets."""
    return OWN[[row.name for row in ROWS].index(shared) % len(OWN)]


@pytest.fixture(params=ROWS, ids=[row.name for row in ROWS])
def wire(request: pytest.FixtureRequest) -> Wire:
    """Each row of the table."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> None:
    """The report says which row a test ran over and what it shows (supports.py). What the row's vendor cannot do is skipped."""
    if "wire" not in request.fixturenames:
        return
    row: Wire = request.getfixturevalue("wire")
    about = {"wire": row.name, "class": row.chat_model.__name__, **facts(request.function, request.module)}
    request.node.user_properties += about.items()
    for (test, value), reason in row.cannot.items():
        if test == request.function.__name__ and value in request.node.callspec.params.values():
            pytest.skip(reason)


@pytest.fixture
def start(wire: Wire) -> Iterator[Start]:
    """A function from a script and constructor arguments to a conversation. Afterwards: no request was refused."""
    with ExitStack() as stack:
        servers: list[ScriptedServer] = []

        def begin(script: Script, **model: Any) -> Talk:
            server = stack.enter_context(wire.serve(script))
            servers.append(server)
            return Talk(wire, server, wire.model(server, **model))

        yield begin
        assert [rejection.message for server in servers for rejection in server.rejections] == []


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """Each way to run a model."""
    return str(request.param)


@pytest.fixture
def run(way: str) -> Run:
    """Runs a model in one of the ways and gives what came of it."""

    async def go(model: Any, messages: Any, **keywords: Any) -> Ran:
        return await run_in(way, model, messages, **keywords)

    return go
