"""Runs in a notebook: what IPython is given to show."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython")

START = """
import json
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
markdown = shell.display_formatter.formatters["text/markdown"]
"""
SHOW = """
import langchain_autotools
from langchain_autotools.testing import ScriptedChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolCall

def forecast(city: str) -> str:
    "The forecast of a city."
    return "rain in " + city

call = ToolCall(name="forecast", args={"city": "Paris"}, id="1", type="tool_call")
def model(): return ScriptedChatModel(replies=[AIMessage("Let me look.", tool_calls=[call]), "It rains."], tools=[forecast])
def shown(value): return shell.display_formatter.format(value)[0]
first, *others = model().stream("Hi")
total = first
for chunk in others:
    total += chunk
plain = ScriptedChatModel(replies=["Hello."]).invoke("Hi")
print(json.dumps([shown(one) for one in (model().invoke("Hi"), total, plain, AIMessage("*Hello*"), first, HumanMessage("Hi"), model())]))
"""


def shown_in_notebook(code: str, folder: Path) -> Any:
    """What a new process prints as JSON that has an IPython shell before it imports the package."""
    environment = {**os.environ, "IPYTHONDIR": str(folder)}
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.further
def test_a_run_is_shown_as_markdown_and_nothing_else_is(tmp_path: Path) -> None:
    """What `invoke` returned and what a stream sums to; other messages, chunks and models are shown as ever."""
    run, total, *others = shown_in_notebook(START + SHOW, tmp_path)
    assert (
        run["text/markdown"]
        == total["text/markdown"]
        == ('Let me look.\n\n`forecast(city="Paris")`\n\n```text\nrain in Paris\n```\n\nIt rains.\n\n*2 turns*')
    )
    assert len(run["text/plain"]) < 600
    assert [list(one) for one in others] == [["text/plain"]] * 5
    assert others[-1]["text/plain"] == "ScriptedChatModel(tools=['forecast'])"


@pytest.mark.further
def test_a_formatter_of_the_users_own_stays(tmp_path: Path) -> None:
    """One that was registered before the package is imported."""
    key = '"langchain_core.messages.ai", "AIMessage"'
    code = (
        f"markdown.for_type_by_name({key}, print)\nimport langchain_autotools\nprint(json.dumps(markdown.for_type_by_name({key}) is print))"
    )
    assert shown_in_notebook(START + code, tmp_path) is True
