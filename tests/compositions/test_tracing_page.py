"""What a tracer and a log show of a run: docs/howto/tracing.md, and LangSmith's client against a server on loopback."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY, fences, run_page
from tests.test_readme import decide

PAGE = REPOSITORY / "docs" / "howto" / "tracing.md"
KEY = "sk-never-shown"


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """Its tree is that of the run, and its log is what the last block logs, ids and times aside."""
    caplog.set_level(logging.DEBUG, "langchain_autotools")  # so that the level that the page sets ends with this test
    with OpenAIServer(lambda exchange: decide(exchange.json)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run_page(PAGE, capsys)
    (shown,) = [text for language, text in fences(PAGE) if language == "log"]
    logged = [
        f"{record.levelname} {record.name}: {record.getMessage()}" for record in caplog.records if record.name == "langchain_autotools"
    ]
    lines = shown.splitlines()
    assert [_without_ids(line) for line in logged[-len(lines) :]] == [_without_ids(line) for line in lines]
    assert "Paris" not in "".join(logged) and KEY not in caplog.text


def _without_ids(line: str) -> str:
    return re.sub(r"(chatcmpl-|call_)\d+|\d\.\d+ s", "*", line)


@pytest.mark.further
@pytest.mark.parametrize("hidden", [False, True])
def test_langsmith_gets_the_tree_of_the_page(hidden: bool, tmp_path: Path) -> None:
    """With the environment alone: each run in its place, with tags, metadata and tokens, and no key; texts are hidden on demand."""
    program = "".join(text for language, text in fences(PAGE) if language == "python")
    wait = "from langchain_core.tracers.langchain import wait_for_all_tracers\nwait_for_all_tracers()\n"
    (tmp_path / "program.py").write_text(program.replace('model="gpt-5"', 'model="gpt-5", stream_usage=True') + wait, encoding="utf-8")
    with LoopbackServer(lambda _: HttpReply([b"{}"])) as langsmith, OpenAIServer(lambda exchange: decide(exchange.json)) as server:
        named = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH_", "LANGCHAIN_"))},
            **{"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url, "PYTHONPATH": str(REPOSITORY)},
            **{"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": langsmith.address, "LANGSMITH_API_KEY": "any"},
            **{"LANGSMITH_PROJECT": "weather", **({"LANGSMITH_HIDE_INPUTS": "true", "LANGSMITH_HIDE_OUTPUTS": "true"} if hidden else {})},
        }
        done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=named, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
    sent = [exchange for exchange in langsmith.exchanges if exchange.body]
    runs = _runs(sent)
    (tree,) = [text for language, text in fences(PAGE) if language == "text" and text.startswith("chain report")]
    turns = ["    llm ChatOpenAI", "    tool get_temperature", "    tool get_temperature", "    llm ChatOpenAI"]
    assert _tree(runs, "weather") == ["chain weather", *turns]
    assert _tree(runs, "report") == tree.splitlines()
    mine = [run for run in runs.values() if run["trace_id"] == _named(runs, "weather")["id"]]
    assert [(run["tags"], run["extra"]["metadata"]["thread_id"], run["session_name"]) for run in mine] == [
        (["demo"], "ann 1", "weather")
    ] * 5
    whole = b"".join(exchange.body for exchange in sent)
    assert KEY.encode() not in whole
    assert (b"Paris" in whole, b'"total_tokens":18' in whole) == (not hidden, True)


def _runs(sent: Iterable[Exchange]) -> dict[str, dict[str, Any]]:
    """The runs of multipart requests, by id: each field as it was said last."""
    runs: dict[str, dict[str, Any]] = {}
    for exchange in sent:
        content_type = next(value for name, value in exchange.lines if name.lower() == "content-type")
        form = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + exchange.body)
        for part in form.walk():
            _, run_id, *field = (
                str(part.get_param("name", "", "content-disposition")).split(".")[:3] if not part.is_multipart() else ("", "")
            )
            if run_id:
                value = json.loads(bytes(part.get_payload(decode=True)))
                runs.setdefault(run_id, {}).update({field[0]: value} if field else value)
    return runs


def _named(runs: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    (run,) = [run for run in runs.values() if run["name"] == name]
    return run


def _tree(runs: dict[str, dict[str, Any]], name: str) -> list[str]:
    """The lines of a trace in the form of the page: each run behind its parent, in the order in which they began."""
    root = _named(runs, name)
    inside = sorted((run for run in runs.values() if run["trace_id"] == root["id"]), key=lambda run: run["dotted_order"])
    return [f"{'    ' * run['dotted_order'].count('.')}{run['run_type']} {run['name']}" for run in inside]
