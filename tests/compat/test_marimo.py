"""`show` in marimo: an app, run by marimo itself without a browser, has the run in the output of its cell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.compat

APP = """
import marimo

app = marimo.App()


@app.cell
def _():
    from langchain_core.messages import AIMessage
    from langchain_autotools import show
    from langchain_autotools.testing import ScriptedChatModel

    def forecast(city: str) -> str:
        "The forecast of a city."
        return f"rain in {city}"

    def model():
        calls = [{"name": "forecast", "args": {"city": "Paris"}, "id": "1"}]
        return ScriptedChatModel(replies=[AIMessage("Let me **look**.", tool_calls=calls), "Take a coat."], tools=[forecast])
    return model, show


@app.cell
def _(model, show):
    run = show(model().stream("How is the weather?"))
    return


@app.cell
async def _(model, show):
    later = await show(model().astream("How is the weather?"))
    return
"""


def test_a_run_is_shown_in_a_cell(tmp_path: Path) -> None:
    """Synchronous and not; drawn from marimo's own thread, since others cannot write to a cell."""
    pytest.importorskip("marimo")
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "marimo", "-y", "export", "html", "app.py", "-o", "app.html", "--no-include-code"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "app.html").read_text(encoding="utf-8")
    assert page.count("at-fold at-done") == page.count("Take a coat.") == 2
