"""What becomes of calls to servers that break the protocol: one oracle for all kinds, over programs and over HTTP."""

import asyncio
import gc
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import AIMessage, ToolMessage
from mcp import ClientSession

from langchain_autotools import ConfigurationError, McpServer, ToolExecutor, ToolPolicy, mcp_server, results_of, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.support import bad_mcp_http, bad_mcp_sessions  # noqa: F401 - add kinds
from tests.support.bad_mcp_kinds import KINDS
from tests.support.bad_mcp_servers import NEVER, SECRETS, UNKNOWN, Kind, Target, serving
from tests.support.mcp_http import McpHttp

ENOUGH = 60.0
"""Seconds after which a test fails."""
PATIENCE = 0.4
"""Seconds of a call that is never answered."""


def ended(function: Callable[..., Any], *values: Any) -> Any:
    """The result of a function, which ends by itself."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(function(*values))
        except BaseException as error:
            result.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        return result.result(ENOUGH)
    finally:
        thread.join(0.1 if not result.done() else None)


def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < end, getattr(condition, "__self__", condition)
        time.sleep(0.005)


def turn(*calls: tuple[str, int]) -> AIMessage:
    """A turn with these calls: each a tool and its number."""
    return AIMessage("", tool_calls=[{"name": name, "args": {"number": number}, "id": f"{name} {number}"} for name, number in calls])


def descriptors() -> dict[str, str]:
    """The open files of this process, without those in which the output of a test is kept."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            goal = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # that of the listing
            continue
        if not goal.endswith("(deleted)"):
            found[name] = goal
    return found


def is_alive(process: int) -> bool:
    """Whether a process runs, or nobody has waited for it."""
    return Path(f"/proc/{process}").exists()


class Left:
    """What a test leaves of files and threads."""

    def __init__(self) -> None:
        self._files, self._threads = descriptors(), set(threading.enumerate())

    def __repr__(self) -> str:
        return str(self.found())

    def is_nothing(self) -> bool:
        """Whether nothing is left."""
        return not any(self.found())

    def found(self) -> Any:
        """What was not there before."""
        files = {name: goal for name, goal in descriptors().items() if self._files.get(name) != goal}
        threads = [thread for thread in threading.enumerate() if thread not in self._threads]
        return files, [thread for thread in threads if thread.name != "autotools-tool"]  # those end by themselves


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What stays in the process for all servers is there: also the loop for a session that is opened by a call."""
    kind = KINDS["healthy"]
    for over in ("http", "stdio"):
        with (
            serving(kind, over, tmp_path_factory.mktemp("warm") / "notes") as target,
            mcp_server(target.server, **target.settings) as server,
        ):
            played(kind, over, server)

            async def inner() -> int:
                """Open a session where calls run."""
                with mcp_server(target.server, **target.settings) as another:
                    return len(another.tools())

            assert ToolExecutor([inner]).execute_all([{"name": "inner", "args": {}, "id": "1"}])[0].text == "2"


@pytest.fixture
def nothing_left(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing stays: no file, no thread, no exception that nobody has read, no coroutine that nobody has waited for."""
    gc.collect()
    left = Left()
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield
        until(left.is_nothing)
        gc.collect()
    assert not [str(one.message) for one in warned if issubclass(one.category, RuntimeWarning | ResourceWarning)]
    assert "never retrieved" not in caplog.text


def status_of(results: dict[str, ToolMessage], name: str) -> Any:
    """A result's status, and what it says."""
    return results[name].status, results[name].text


def played(kind: Kind, over: str, server: McpServer) -> dict[str, ToolMessage]:
    """The results of a turn with the bad call and a healthy one, and of a healthy call after it."""
    patient = ToolPolicy(timeout=PATIENCE) if kind.says(over) == NEVER else None
    policies, default = {"bad": patient} if patient else None, patient if kind.lost else None
    executor = ended(lambda: ToolExecutor([server], policies=policies, default_policy=default))
    results = ended(executor.execute_all, turn(("bad", 1), ("good", 2)))
    results += ended(lambda: asyncio.run(executor.aexecute_all(turn(("good", 3)))))
    return {message.tool_call_id: message for message in results}


_FORM = logging.Formatter()


def logged(record: logging.LogRecord) -> str:
    """What a log tells, without the heads of replies: there a server itself repeats what it likes, and the HTTP library logs it."""
    text = _FORM.format(record)
    return "" if record.name.startswith("httpcore") and "headers.complete" in text else text


def texts_of(kind: Kind, over: str, target: Target, server: McpServer) -> list[str]:
    """What is told of the server's tools and calls, which is as it should be."""
    if kind.refused is not None:
        with pytest.raises(ConfigurationError, match=kind.refused) as refused:
            ended(server.tools)
        return [repr(refused.value)]
    if kind.told is None:
        assert ended(server.tools) == []
        return []
    results = played(kind, over, server)
    check(kind, over, target, results)
    return [result.text for result in results.values()]


SLOW = ("an answer that goes on after a day",)
CASES = [
    pytest.param(name, over, marks=[pytest.mark.exhaustive if name in SLOW else pytest.mark.further], id=f"{name}-{over}")
    for name, kind in KINDS.items()
    for over in kind.over
    if over != "modern" or hasattr(ClientSession, "discover")
]


@pytest.mark.parametrize(("name", "over"), CASES)
def test_a_bad_server(name: str, over: str, tmp_path: Path, caplog: Any, capfd: Any, nothing_left: None) -> None:
    """Its calls end, and say what is true; a healthy call beside and after them works; nothing is left, and no secret is told."""
    kind = KINDS[name]
    with serving(kind, over, tmp_path / "notes") as target:
        server = mcp_server(target.server, **target.settings, open_timeout=PATIENCE if kind.refused == "Timeout" else ENOUGH)
        try:
            texts = [repr(server), server.name, *texts_of(kind, over, target, server)]
        finally:
            ended(server.close)
        until(lambda: target.open_connections() == 0)
        until(lambda: not any(map(is_alive, target.processes)))
    told = capfd.readouterr()
    logs = [logged(record) for record in caplog.records]
    for text in (*texts, *logs, told.out, told.err):
        assert not [secret for secret in SECRETS.values() if secret in text]


def check(kind: Kind, over: str, target: Target, results: dict[str, ToolMessage]) -> None:
    """The results say what is true."""
    begun = target.begun
    status, said = status_of(results, "bad 1")
    assert kind.says(over) in said and (said or not kind.says(over)), said
    assert status == kind.status, said
    assert begun.count("bad 1") == kind.begun
    for call in ("good 2", "good 3"):
        answer = str(2 * int(call[-1]))
        if not (kind.lost and any(words in results[call].text for words in (UNKNOWN, NEVER))):
            assert status_of(results, call) == ("success", answer)
        assert begun.count(call) <= 1
    assert begun.count("initialize") + begun.count("server/discover") <= 2 * kind.sessions
    assert begun.count("GET") <= 10
    assert begun.count("tools/list") <= 3 or "page" in kind.name


# ---------------------------------------------------------------------------------------------- beside the kinds


@pytest.mark.further
@pytest.mark.parametrize("over", ["stdio", "http"])
def test_a_run_with_a_deadline_ends(over: str, tmp_path: Path, nothing_left: None) -> None:
    """Whose call is never answered, without a policy; the call beside it has its result."""
    with serving(KINDS["no answer"], over, tmp_path / "notes") as target, mcp_server(target.server, **target.settings) as server:
        model = ScriptedChatModel(tools=[server], replies=[turn(("good", 2), ("bad", 1)), "Done."])
        run = ended(lambda: model.invoke("Go", deadline=2 * PATIENCE))
        assert stop_reason(run) == "deadline"
        assert [(result.status, result.text[:3]) for result in results_of(run)] == [("success", "4"), ("error", '{"e')]
        assert target.begun.count("bad 1") == 1


@pytest.mark.further
def test_a_server_that_is_gone_has_run_nothing(tmp_path: Path, nothing_left: None) -> None:
    """Which the result says."""
    with serving(KINDS["healthy"], "http", tmp_path / "notes") as target:
        server = mcp_server(target.server, **target.settings)
        executor = ToolExecutor([server])
    (result,) = ended(executor.execute_all, turn(("good", 1)))
    ended(server.close)
    assert result.status == "error" and "cannot be opened" in result.text and "ConnectError" in result.text
    assert "good 1" not in target.begun


@pytest.mark.further
@pytest.mark.parametrize("name", ["no answer", "an answer without headers", "an answer that goes on for ever"])
def test_calls_that_are_given_up_keep_no_connection(name: str, tmp_path: Path, nothing_left: None) -> None:
    """However many there are: a healthy call works beside and after them."""
    with serving(KINDS[name], "http", tmp_path / "notes") as target, mcp_server(target.server, **target.settings) as server:
        executor = ToolExecutor([server], policies={"bad": ToolPolicy(timeout=PATIENCE)})
        results = ended(executor.execute_all, turn(("good", 1), *[("bad", number) for number in range(150)]))
        assert [result.status for result in results] == ["success", *["error"] * 150]
        until(lambda: target.open_connections() <= 22)
        assert executor.execute_all(turn(("good", 2)))[0].text == "4"


@pytest.mark.further
@pytest.mark.parametrize("name", ["an error that repeats its secrets", "a body that repeats its secrets"])
def test_keys_of_a_function_are_told_nowhere(name: str, tmp_path: Path) -> None:
    """Where a server repeats them in an error: those of the last request."""
    with serving(KINDS[name], "http", tmp_path / "notes") as target:
        settings: dict[str, Any] = {"headers": lambda: {"X-Key": SECRETS["header"]}}
        with mcp_server(target.server, **settings) as server:
            (result,) = ToolExecutor([server]).execute_all(turn(("bad", 1)))
    assert result.status == "error" and "***" in result.text
    assert not [secret for secret in SECRETS.values() if secret in result.text]


@pytest.mark.parametrize(
    "calls", [pytest.param(200, marks=pytest.mark.further, id="200"), pytest.param(3_000, marks=pytest.mark.exhaustive, id="3,000")]
)
def test_many_sessions_leave_nothing(calls: int, nothing_left: None) -> None:
    """A server that forgets its session after each call: each call opens one, runs once, and nothing of the others is left."""
    with McpHttp() as http, mcp_server(http.url) as server:
        executor = ToolExecutor([server])
        for number in range(calls):
            (result,) = executor.execute_all([{"name": "double", "args": {"number": number}, "id": str(number)}])
            assert result.text == str(2 * number)
            http.forget()
        assert http.calls == list(range(calls))
        assert http.sessions == calls
