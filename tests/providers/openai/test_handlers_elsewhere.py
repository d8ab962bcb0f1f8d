"""Handlers at other entrances than a model's own: executors, events, agents, copies, the page that shows them."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langchain_autotools import Agent, ChatOpenAI, ConfigurationError, Handler, ToolExecutor, ToolPolicy, events, pending_calls
from langchain_autotools.event_types import CallResult, CallsPending, MessageDone
from tests.providers.openai.test_client_calls import ANSWERS, FUNCTION, QUESTION, SHELL, Talk, message, reply, start
from tests.providers.openai.test_handlers import Calls, arguments_of, handling
from tests.support.pages import REPOSITORY, run_page
from tests.support.responses_server import ResponsesServer
from tests.support.script import Turn
from tests.support.weather import get_temperature

__all__ = ["start"]


def test_an_executor_alone_has_handlers(start: Callable[..., Talk]) -> None:
    """In a loop of one's own they run what needs no approval, and wait with the rest."""
    calls: Calls = []
    for needs in (False, True):
        model, server = start([reply(message("Look."), FUNCTION, SHELL), Turn("Fine.")], tools=())
        bound = model.bind_tools([get_temperature, {"type": "shell"}])
        executor = ToolExecutor([get_temperature], handlers={"shell": Handler(handling("shell", calls), requires_approval=needs)})
        answer = bound.invoke(QUESTION)
        history = [*QUESTION, answer, *executor.execute_all(answer)]
        if needs:
            assert len(calls) == 1
            (pending,) = executor.pending_calls(answer)
            assert pending.kind == "approval"
            history += executor.execute_all(answer, messages=history, decisions=[pending.approve()])
        assert bound.invoke(history).text == "Fine."
        assert server.exchanges[1].json["input"][-1] == ANSWERS["shell"]
    assert len(calls) == 2


def test_the_nearest_handler_of_a_kind_holds(start: Callable[..., Talk]) -> None:
    """That of the executor which a model was given as its tools goes before the model's own; another kind's is the model's."""
    own: Calls = []
    given: Calls = []
    executor = ToolExecutor([get_temperature], handlers={"shell": Handler(handling("shell", given), requires_approval=False)})
    for handlers in ({"shell": Handler(handling("shell", own), requires_approval=False)}, {"mcp_approval": bool}):
        model, _ = start([reply(FUNCTION, SHELL), Turn("Fine.")], tools=executor, handlers=handlers, use_responses_api=True)
        assert model.invoke(QUESTION).text == "Fine."
    assert (own, len(given)) == ([], 2)


def test_whoever_reads_events_is_told(start: Callable[..., Talk]) -> None:
    """The call waits as one that needs approval, and its result is that of a call that ran."""
    calls: Calls = []
    model, _ = start([reply(SHELL), Turn("Fine.")], handlers={"shell": handling("shell", calls)})
    told = list(events(model.stream(QUESTION)))
    (waiting,) = [event for event in told if isinstance(event, CallsPending)]
    history = [*QUESTION, *(event.message for event in told if isinstance(event, MessageDone))]
    again = list(events(model.stream(history, resume=[waiting.calls[0].approve()])))
    (result,) = [event for event in again if isinstance(event, CallResult)]
    assert (result.call.spelling, result.message.name, result.message.status) == ("shell_call", "shell_call", "success")
    assert calls == [arguments_of(SHELL)]


def test_an_agent_and_a_copy_have_the_handlers(start: Callable[..., Talk]) -> None:
    """An agent goes on with an approval; a model with other tools, and one that came out of a pickle, keep them."""
    calls: Calls = []
    model, server = start([reply(SHELL), Turn("Fine.")], handlers={"shell": handling("shell", calls)})
    agent = Agent(model.with_tools([{"type": "shell"}]))
    (pending,) = pending_calls(agent.run("Go"))
    assert agent.run(resume=[pending.approve()]).text == "Fine."
    assert (server.exchanges[1].json["input"][-1], len(calls)) == (ANSWERS["shell"], 1)
    executor = ToolExecutor([get_temperature], handlers={"mcp_approval": Handler(bool, policy=ToolPolicy(timeout=3))})
    for copied in (copy.copy(executor), copy.deepcopy(executor), pickle.loads(pickle.dumps(executor))):
        assert copied.handlers is not None and copied.handlers.has("mcp_approval")
        assert copied.prepared.arguments_of("mcp_approval handler") is not None


def test_what_cannot_work_is_refused() -> None:
    """By name, where the model is made."""
    known: dict[str, Any] = {"model": "any", "api_key": "key", "tools": [{"type": "shell"}]}

    async def later(call: Any) -> bool:
        return True

    for handlers in ({"shel": print}, {"shell": "ls"}, [print], {("computer", ""): print}):
        with pytest.raises(ConfigurationError, match="handler"):
            ChatOpenAI(**known, handlers=handlers)
    for wrong in ({"requires_approval": later}, {"requires_approval": 1}, {"policy": 3}, {"policy": ToolPolicy(progress=True)}):
        with pytest.raises(ConfigurationError, match="handler"):
            Handler(print, **wrong)
    with pytest.raises(ConfigurationError, match="set where the model is made"):
        ChatOpenAI(**known).invoke("Go", handlers={"shell": print})


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The program of the how-to prints what the page shows."""
    with ResponsesServer([reply(SHELL), Turn("There is notes.txt.")] * 2) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run_page(REPOSITORY / "docs" / "howto" / "handlers.md", capsys)
        assert (server.rejections, len(server.exchanges)) == ([], 4)


def test_the_page_s_shell_has_its_wall(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, start: Callable[..., Talk]
) -> None:
    """The how-to's runner for bubblewrap changes its folder, and reaches neither the rest of the machine, its environment nor a network."""
    if shutil.which("bwrap") is None or subprocess.run(["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"], check=False).returncode:
        pytest.skip("bubblewrap is not installed, or may make no namespaces here")
    secret = tmp_path / "secret"
    secret.write_text("4711", encoding="utf-8")
    (work := tmp_path / "work").mkdir()
    monkeypatch.setenv("SECRET", "4711")
    with ResponsesServer([reply(SHELL), Turn("There is notes.txt.")] * 2) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        page = run_page(REPOSITORY / "docs" / "howto" / "handlers.md", capsys, lambda code: code.replace("/srv/work", str(work)))
    commands = ["echo 1 > note; cat note", f"cat {secret}", "env; ls /", "touch /usr/new", "cat /proc/net/dev | tail -n +3", "exit 3"]
    wrote, read, seen, touched, network, left = page["in_bubblewrap"]({"action": {"commands": commands}})
    assert wrote == {"stdout": "1\n", "stderr": "", "exit_code": 0} and (work / "note").read_text(encoding="utf-8") == "1\n"
    assert read["exit_code"] and not read["stdout"]
    assert "4711" not in seen["stdout"] and not {"home", "root", "etc", "tmp"} & set(seen["stdout"].split())
    assert touched["exit_code"] and "Read-only" in touched["stderr"]
    assert [line.split(":")[0].strip() for line in network["stdout"].splitlines()] == ["lo"]
    assert left["exit_code"] == 3
