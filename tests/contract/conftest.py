"""Fixtures of the contract: a wire, a way to run, and a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from tests.contract.supports import facts
from tests.contract.talk import WAYS, Ran, Run, Start, Talk, run_in
from tests.contract.wires import ROWS, Wire
from tests.support.pairwise import OWN_WIRES, pairwise
from tests.support.scripted_server import Script, ScriptedServer

_DATA = ("strict", "name", "choice", "schema_is", "structured", "bound", "from_every_row")
"""What the names of tests have whose values meet the data of a row: its dialect of schemas, its choices, its own histories."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A behaviour runs where it can differ: over each wire's own row, in one way, which is another one over the next row; over one of the
    rows that share a wire where their data makes a difference. The rest is `exhaustive`, which `.ci/run` runs too.

    Of what a test has beside row and way (methods, schemas, replies) each value meets each wire's own row.
    """
    tests: dict[str, list[Any]] = {}
    for item in items:
        if isinstance(_params(item).get("wire"), Wire) and not item.get_closest_marker("exhaustive"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        ways = list(dict.fromkeys(_params(case).get("way") for case in cases))
        chosen = [case for case in cases if _differs(case, ways)]
        shared = [case for case in chosen if _params(case)["wire"].name not in OWN_WIRES]
        paired = [case for case in chosen if case not in shared]
        kept = pairwise([dict(enumerate(case.callspec._idlist)) for case in paired])  # the parts of an id: `indices` number whole products
        left = {id(case) for case in _out_of_turn(shared)}
        stay = {id(case) for place, case in enumerate(paired) if place in kept} | {id(case) for case in shared} - left
        for case in cases:
            if id(case) not in stay:
                case.add_marker(pytest.mark.exhaustive)


def _params(case: Any) -> dict[str, Any]:
    return getattr(getattr(case, "callspec", None), "params", {})


def _out_of_turn(cases: list[Any]) -> list[Any]:
    """Those that are left over where each row takes one of its cases, the next row the next one."""
    rows: dict[str, list[Any]] = {}
    for case in cases:
        rows.setdefault(case.callspec.params["wire"].name, []).append(case)
    return [case for turn, own in enumerate(rows.values()) for place, case in enumerate(own) if place != turn % len(own)]


def _differs(case: Any, ways: Sequence[Any]) -> bool:
    """Whether this case of a test in these ways may find over its row what no other finds.

    A row takes one of the ways, the next row another one. A row that shares its wire has the tests of its data, repeats few times what a
    wire's own row repeats many times, and is given its own histories. Those of a wire's own row and of one that shares it meet by turns.
    """
    row, test, params = _params(case)["wire"], case.originalname, _params(case)
    place = OWN_WIRES.index(row.name) if row.name in OWN_WIRES else ROWS.index(row)
    if params.get("way") != ways[(place + len(test)) % len(ways)]:
        return False
    origin = params.get("origin", row.name)
    if row.name in OWN_WIRES:
        return params.get("times") != "few" and (origin in OWN_WIRES or _turn(origin) == row.name)
    return any(word in test for word in _DATA) and params.get("times") != "many" and origin in {_turn(row.name), row.name}


def _turn(shared: str) -> str:
    """The wire's own row that a row without one meets."""
    return OWN_WIRES[[row.name for row in ROWS].index(shared) % len(OWN_WIRES)]


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
