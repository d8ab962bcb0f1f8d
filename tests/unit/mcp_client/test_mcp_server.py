"""`mcp_server`: one session for all calls, over a program and over HTTP; what happens when the server ends; what it may ask."""

import asyncio
import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import AIMessage
from mcp import ClientSession

from langchain_autotools import (
    ConfigurationError,
    McpServer,
    ToolExecutor,
    ToolPolicy,
    mcp_server,
    new_messages,
    pending_calls,
    results_of,
    stop_reason,
)
from langchain_autotools.testing import ScriptedChatModel

PROGRAM = Path(__file__).parents[2] / "support" / "mcp_program.py"
ENOUGH = 30.0


class Notes:
    """What a server has noted: which processes there were, and what each has begun."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def lines(self) -> list[tuple[int, str]]:
        """The notes, each with the process that made it."""
        found = (line.split(" ", 1) for line in self.path.read_text().splitlines())
        return [(int(process), text) for process, text in found]

    @property
    def processes(self) -> list[int]:
        """The processes, in order."""
        return list(dict.fromkeys(process for process, _ in self.lines))

    def begun(self, text: str) -> int:
        """How often this was begun."""
        return [said for _, said in self.lines].count(text)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """The notes of this test's servers."""
    return Notes(tmp_path / "notes")


@pytest.fixture
def server(notes: Notes) -> Iterator[McpServer]:
    """A server, closed at the end."""
    with mcp_server([sys.executable, str(PROGRAM), str(notes.path)]) as opened:
        yield opened


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def asks(*calls: str, **arguments: Any) -> AIMessage:
    """A turn that calls tools."""
    made = [{"name": name, "args": arguments, "id": f"{name} {number}"} for number, name in enumerate(calls)]
    return AIMessage("", tool_calls=made)


def said(run: Any) -> list[Any]:
    """What the results of a run say."""
    return [message.content for message in results_of(run)]


def model(server: Any, *replies: Any, **settings: Any) -> ScriptedChatModel:
    """A model with the server's tools."""
    return ScriptedChatModel(tools=[server], replies=[*replies, "Done."], **settings)


async def astreamed(made: ScriptedChatModel) -> Any:
    """The sum of an asynchronous stream."""
    chunks = [chunk async for chunk in made.astream("Go")]
    return sum(chunks[1:], chunks[0])


WAYS: dict[str, Callable[[ScriptedChatModel], Any]] = {
    "invoke": lambda made: made.invoke("Go"),
    "stream": lambda made: sum((chunks := list(made.stream("Go")))[1:], chunks[0]),
    "ainvoke": lambda made: asyncio.run(made.ainvoke("Go")),
    "astream": lambda made: asyncio.run(astreamed(made)),
}


@pytest.mark.parametrize("way", WAYS)
def test_all_calls_go_over_one_session(way: str, server: McpServer, notes: Notes) -> None:
    """In every way of calling, of several turns and of several calls at once: one process."""
    made = model(server, asks("double", "double", number=4), asks("double", number=5))
    assert said(WAYS[way](made)) == ["8", "8", "10"]
    assert len(notes.processes) == 1


def test_an_executor_alone_has_its_tools(server: McpServer) -> None:
    """A loop of one's own too."""
    (result,) = ToolExecutor([server]).execute_all(asks("double", number=3))
    assert result.content == "6"


def test_calls_need_approval_like_any_tool_s(server: McpServer, notes: Notes) -> None:
    """Nothing reaches the server before."""
    made = model(server, asks("double", number=2), requires_approval=["double"])
    run = made.invoke("Go")
    assert notes.begun("double 2") == 0
    made.resume([("user", "Go"), *new_messages(run)], [call.approve() for call in pending_calls(run)])
    assert notes.begun("double 2") == 1


# ---------------------------------------------------------------------------------------------- the server ends


def test_a_server_that_has_ended_is_opened_again(server: McpServer, notes: Notes) -> None:
    """For the next call, which then runs once."""
    made = model(server, asks("double", number=1), lambda *_, **__: kill() or asks("double", number=2))

    def kill() -> None:
        os.kill(notes.processes[0], signal.SIGKILL)
        until(lambda: not server._holder.session or not server._holder.session.is_usable)

    assert said(made.invoke("Go")) == ["2", "4"]
    assert (len(notes.processes), notes.begun("double 2")) == (2, 1)


@pytest.mark.parametrize("way", WAYS)
def test_the_call_during_which_it_ended_is_not_repeated(way: str, server: McpServer, notes: Notes) -> None:
    """Nobody knows what it did; the next call has a new server."""
    results = said(WAYS[way](model(server, asks("die"), asks("double", number=2))))
    assert "interrupted, outcome unknown" in results[0] and results[1] == "4"
    assert (notes.begun("die"), len(notes.processes)) == (1, 2)


def test_a_server_that_cannot_be_opened_again_answers_with_an_error(notes: Notes, tmp_path: Path) -> None:
    """The run goes on."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.read_text())
    with mcp_server([sys.executable, str(program), str(notes.path)]) as server:
        made = model(server, lambda *_, **__: program.unlink() or asks("die"), asks("double", number=2))
        assert "cannot be opened" in said(made.invoke("Go"))[1]


@pytest.mark.parametrize(("calls", "kills"), [(60, 3), pytest.param(1_000, 20, marks=pytest.mark.exhaustive)])
def test_no_call_is_lost_or_done_twice(calls: int, kills: int, server: McpServer, notes: Notes) -> None:
    """Each call has its result, or is said to be interrupted; none is begun twice."""
    executor = ToolExecutor([server])

    async def run() -> list[str]:
        found = []
        for number in range(calls):
            if number % (calls // kills) == calls // kills // 2:
                os.kill(notes.processes[-1], signal.SIGKILL)
            (result,) = await executor.aexecute_all(asks("double", number=number))
            found.append(result.text)
        return found

    found = asyncio.run(run())
    unknown = [text for text in found if "interrupted, outcome unknown" in text]
    assert all(text == str(2 * number) or text in unknown for number, text in enumerate(found))
    assert len(unknown) <= kills and len(notes.processes) == kills + 1
    assert all(notes.begun(f"double {number}") <= 1 for number in range(calls))


@pytest.mark.parametrize("modern", [False, True])
def test_a_call_that_takes_too_long_is_given_up(modern: bool, notes: Notes) -> None:
    """The session stays: the server is told which call is cancelled, and the next call has it."""
    if modern and not hasattr(ClientSession, "discover"):
        pytest.skip("the protocol of version 2 of `mcp`")
    with mcp_server([sys.executable, str(PROGRAM), str(notes.path), *["modern"] * modern]) as server:
        run = model(server, asks("wait"), asks("double", number=1), policies={"wait": ToolPolicy(timeout=0.3)}).invoke("Go")
        assert "0.3" in said(run)[0] and said(run)[1] == "2"
        until(lambda: notes.begun("cancelled wait") == 1)
        assert len(notes.processes) == 1


@pytest.mark.parametrize("way", ["task", "flag"])
def test_a_run_that_is_cancelled_cancels_its_call(way: str, server: McpServer, notes: Notes) -> None:
    """By its task or by `cancel`, while the call is under way."""
    flag, made = threading.Event(), model(server, asks("wait"))

    async def run() -> None:
        task = asyncio.ensure_future(made.ainvoke("Go", cancel=flag))
        while not notes.begun("wait"):
            await asyncio.sleep(0.01)
        if way == "flag":
            flag.set()
            assert stop_reason(await task) == "cancelled"
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    until(lambda: notes.begun("cancelled wait") == 1)
    assert len(notes.processes) == 1


# ---------------------------------------------------------------------------------------------- what it offers and asks


def test_other_tools_are_offered_by_the_next_run(server: McpServer) -> None:
    """Never within a run: its requests begin with the same bytes."""
    made = model(server, asks("grow"), asks("more"), "Done.", asks("more"))
    assert "not a valid tool" in said(made.invoke("Go"))[1]
    until(server.is_changed)
    assert said(made.invoke("Go")) == ["more"]
    assert [len(request.tools) for request in made.requests] == [14, 14, 14, 15, 15]


@pytest.mark.parametrize(
    ("elicit", "expected", "warned"),
    [
        (None, '{"action": "decline"}', "asks a question"),
        (lambda text, schema: {"city": text}, '{"action": "accept", "content": {"city": "Which city?"}}', ""),
        (lambda text, schema: None, '{"action": "decline"}', ""),
        (lambda text, schema: {"city": 1}, '{"action": "decline"}', "does not fit"),
    ],
)
def test_questions_of_the_server(elicit: Any, expected: str, warned: str, notes: Notes, caplog: pytest.LogCaptureFixture) -> None:
    """Are answered by the caller's function, checked against their schema, or declined, which is said."""
    with mcp_server([sys.executable, str(PROGRAM), str(notes.path)], elicit=elicit) as server, caplog.at_level(logging.WARNING):
        assert said(model(server, asks("ask")).invoke("Go")) == [expected]
    assert warned in caplog.text and (warned or not caplog.records)


def test_sampling_is_refused_and_roots_are_told(notes: Notes) -> None:
    """A server cannot use the model; it knows the folders that it is given, and none else."""
    with mcp_server([sys.executable, str(PROGRAM), str(notes.path)], roots=["file:///home/alice"]) as server:
        thought, folders = said(model(server, asks("think", "folders")).invoke("Go"))
    assert "not supported" in thought
    assert folders == '{"roots": [{"uri": "file:///home/alice"}]}'


def test_equal_names_of_two_servers_are_left_out_or_prefixed(server: McpServer, notes: Notes, caplog: pytest.LogCaptureFixture) -> None:
    """Never the one in place of the other, given or bound; a tool of the caller's own stays in place of a server's."""
    command = [sys.executable, str(PROGRAM), str(notes.path)]

    def double(number: int) -> str:
        """Double a number."""
        return "mine"

    with mcp_server(command) as other, caplog.at_level(logging.WARNING):
        assert "double" not in {tool.name for tool in ToolExecutor([server, other]).tools.values()}
        made = ScriptedChatModel(tools=[server, double], replies=[asks("double", number=1), "Done.", "Bound."])
        assert said(made.invoke("Go")) == ["mine"]
        made.bind_tools([server, other, double]).invoke("Go")
    assert [tool["function"]["name"] for tool in made.requests[-1].tools].count("double") == 1
    assert caplog.text.count("prefix") == 3 and caplog.text.count("'double'") == 3
    with mcp_server(command, prefix="other_") as other:
        made = ScriptedChatModel(tools=[server, other], replies=[asks("double", "other_double", number=1), "Done."])
        assert said(made.invoke("Go")) == ["2", "2"]


# ---------------------------------------------------------------------------------------------- open and close


def test_it_ends_with_its_model(notes: Notes) -> None:
    """Nothing else keeps the process."""
    made = model(mcp_server([sys.executable, str(PROGRAM), str(notes.path)]), asks("double", number=1))
    asyncio.run(made.ainvoke("Go"))
    del made
    until(lambda: gc.collect() >= 0 and notes.begun("ended") == 1)


LEFT = """
import asyncio, sys
from langchain_core.messages import AIMessage
from langchain_autotools import mcp_server
from langchain_autotools.testing import ScriptedChatModel

asks = AIMessage("", tool_calls=[{"name": "double", "args": {"number": 4}, "id": "1"}])
model = ScriptedChatModel(tools=[mcp_server(sys.argv[1:])], replies=[asks, "Done."])
print((asyncio.run(model.ainvoke("Go")) if sys.argv[-1] == "modern" else model.invoke("Go")).text)
"""


@pytest.mark.further
@pytest.mark.parametrize("last", [pytest.param([], id="sync"), pytest.param(["modern"], id="async")])
def test_it_ends_with_the_process(last: list[str], notes: Notes) -> None:
    """A program that closes nothing ends at once, without a word, and so does its server."""
    command = [sys.executable, str(PROGRAM), str(notes.path), *last]
    done = subprocess.run([sys.executable, "-c", LEFT, *command], capture_output=True, text=True, timeout=2 * ENOUGH, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Done.\n", "")
    assert notes.begun("double 4") == notes.begun("ended") == len(notes.processes) == 1


def test_a_closed_server_opens_for_the_next_call(server: McpServer, notes: Notes) -> None:
    """As one that has ended."""
    made = model(server, asks("double", number=1))
    server.close()
    assert notes.begun("ended") == 1
    assert said(made.invoke("Go")) == ["2"]
    assert len(notes.processes) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_session_of_its_own(server: McpServer, notes: Notes) -> None:
    """The parent's pipes are not written to by two."""
    made = model(server, asks("double", number=1), "Done.", asks("double", number=2))
    made.invoke("Go")
    child = os.fork()
    if not child:
        try:
            os._exit(0 if said(made.invoke("Go")) == ["4"] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert len(notes.processes) == 2


def test_secrets_are_shown_and_pickled_nowhere(notes: Notes) -> None:
    """What has none travels, and opens a session of its own."""
    command = [sys.executable, str(PROGRAM), str(notes.path)]
    with mcp_server(command, env={"SECRET": "hush"}) as server:
        made = model(server, asks("secret"))
        assert said(made.invoke("Go")) == ["hush"]
        assert "hush" not in repr(server) + repr(made)
        with pytest.raises(pickle.PicklingError, match="env, which no pickle holds"):
            pickle.dumps(server)
    travelled = pickle.loads(pickle.dumps(mcp_server(command)))
    with travelled:
        assert said(model(travelled, asks("double", number=2)).invoke("Go")) == ["4"]


def test_what_has_no_effect_is_refused() -> None:
    """By its name."""
    refused: list[tuple[dict[str, Any], str]] = [
        ({"server": ""}, "URL or a command"),
        ({"server": "http://127.0.0.1:1", "env": {"A": "1"}}, "env is for servers that are started"),
        ({"server": "program", "headers": {"A": "1"}}, "headers is for servers that have a URL"),
        ({"server": "program", "roots": "file:///x"}, "list of URIs"),
        ({"server": "program", "open_timeout": 0}, "greater than 0"),
    ]
    for arguments, words in refused:
        with pytest.raises(ConfigurationError, match=words):
            mcp_server(**arguments)


@pytest.mark.parametrize("command", [["no-such-program-here"], [sys.executable, "-c", "pass"]])
def test_a_program_that_is_no_server_is_an_error(command: list[str]) -> None:
    """When the model is made, in which a server has to list its tools."""
    with pytest.raises(ValueError, match="cannot be opened"):
        ScriptedChatModel(tools=[mcp_server(command)])


@pytest.mark.further
def test_a_program_that_says_nothing_is_given_up() -> None:
    """After the time that it has."""
    with pytest.raises(ValueError, match="cannot be opened: TimeoutError"):
        ScriptedChatModel(tools=[mcp_server([sys.executable, "-c", "import time; time.sleep(60)"], open_timeout=0.5)])


@pytest.mark.further
def test_a_program_may_have_put_another_stderr(notes: Notes) -> None:
    """One that is no file where the SDK is imported, and is closed later: a server's error output goes where that of the process goes."""
    command = [sys.executable, str(PROGRAM), str(notes.path)]
    code = f"""
import io, sys
sys.stderr = io.StringIO()
from langchain_autotools import mcp_server
import mcp
for close in (False, True):
    sys.stderr.close() if close else None
    with mcp_server({command!r}) as server:
        print(len(server.tools()) > 1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "True"]
