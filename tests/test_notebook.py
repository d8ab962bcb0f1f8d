"""The example notebook, executed by a kernel: it gives the outputs that are stored in it.

`python -m tests.test_notebook` executes it and stores them.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.openai_wire import Asked, reply_to
from tests.support.script import Call, Turn

NOTEBOOK = Path(__file__).resolve().parent.parent / "examples" / "notebook.ipynb"
PATIENCE = 120
TABLE = """\
| City | Temperature |
|---|---|
| Paris | **21 °C** |
| Rome | **27 °C** |

There is no such place as *Atlantis*."""
MAIL = {"to": "Anna", "text": "Dear Anna,\n\nParis has 21 °C.\n\nBest wishes"}


def decide(messages: list[Mapping[str, Any]], model: str) -> Turn:
    """What the models say: each question's calls, then its answer."""
    question = max(place for place, message in enumerate(messages) if message["role"] == "user")
    asked, answered = messages[question]["content"], len(messages) > question + 1
    if model == "gpt-5-mini":
        return Turn("Paris has 21 °C: take a coat.") if answered else Turn(calls=[Call("get_temperature", {"city": "Paris"})])
    if "Atlantis" in asked:
        calls = [Call("get_temperature", {"city": city}) for city in ("Paris", "Rome", "Atlantis")]
        return Turn(TABLE) if answered else Turn("Let me look.", calls, reasoning="Three cities.\nI ask for all of them at once.")
    if "travellers" in asked:
        calls = [Call("ask_traveller", {"question": "What is Paris like today?"})]
        return Turn("They say: take a coat.") if answered else Turn(calls=calls)
    return Turn("Anna knows now.") if answered else Turn("I write to her.", [Call("send_mail", MAIL)])


def answer(exchange: Exchange) -> HttpReply:
    """The server's reply."""
    body = exchange.json
    return reply_to(Asked.by(exchange.number, body), decide(body["messages"], body["model"]))


@contextmanager
def place_to_ask(folder: Path) -> Iterator[None]:
    """A server that the environment names, and no settings of the user's."""
    with LoopbackServer(answer) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("OPENAI_BASE_URL", f"{server.address}/v1")
        patch.setenv("PYTHONPATH", str(NOTEBOOK.parent.parent))
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
            patch.setenv(name, str(folder / name))
        patch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        yield


async def executed(folder: Path) -> Any:
    """The notebook after all of its cells have run."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with place_to_ask(folder):
        client = NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3", record_timing=False)
        await client.async_execute()
    return notebook


def outputs(notebook: Any) -> list[list[dict[str, Any]]]:
    """The outputs of all cells, without what differs between runs: how long calls took."""
    data = [[output.get("data", output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]
    told: list[list[dict[str, Any]]] = json.loads(re.sub(r" <span class=.{1,2}at-time.{1,2}>[\d.]+ s</span>", "", json.dumps(data)))
    return told


@pytest.mark.further
async def test_the_example_notebook_gives_what_it_shows(tmp_path: Path) -> None:
    """Each cell, executed in a kernel, has the outputs that are stored with it."""
    nbformat = pytest.importorskip("nbformat")
    stored = outputs(nbformat.read(NOTEBOOK, as_version=4))
    assert outputs(await executed(tmp_path)) == stored
    shown = [[output["text/plain"] for output in cell] for cell in stored]
    assert shown[1][1:] == [
        "Let me look.",
        '→ get_temperature(city="Paris")\n← 21 °C',
        '→ get_temperature(city="Rome")\n← 27 °C',
        '→ get_temperature(city="Atlantis")\n← {"error": "KeyError: \'Atlantis\'"}',
        TABLE,
        "[2 turns · 22 tokens in, 14 out]",
    ]
    assert "They say: take a coat." in shown[2] and "stopped: calls_pending" in shown[3][-1]
    assert stored[4][-1]["text/markdown"] == "*The message of this run, with 2 new messages*"


LAST = """\
from langchain_core.messages import HumanMessage
from langchain_autotools import ChatOpenAI, pending_calls, show

def get_temperature(city: str) -> str:
    "Current temperature of a city."
    return "21 °C"

def send_mail(to: str, text: str) -> str:
    "Send a mail."
    return f"Sent to {to}."

model = ChatOpenAI(model="gpt-5", tools=[get_temperature, send_mail], requires_approval=["send_mail"])
history = [HumanMessage("Write to Anna about it.")]
asked = run = show(model.stream(history))
"""


@pytest.mark.further
async def test_nothing_is_shown_twice(tmp_path: Path) -> None:
    """A cell has no output but its displays, also where `show` is its last expression; the line of a call that waits is run as it is."""
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(LAST)])
    with place_to_ask(tmp_path):
        client = NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3")
        async with client.async_setup_kernel():
            await client.async_execute_cell(notebook.cells[0], 0)
            asks, call, end = (output["data"]["text/plain"] for output in notebook.cells[0].outputs)
            line = end.splitlines()[1]
            for source in (line, f"run = asked\n{line.removeprefix('run = ')}"):
                notebook.cells.append(nbformat.v4.new_code_cell(source))
                await client.async_execute_cell(notebook.cells[-1], len(notebook.cells) - 1)
    assert asks == "I write to her." and call.startswith('? send_mail(to="Anna"') and "May it run" in call
    assert {output.output_type for cell in notebook.cells for output in cell.outputs} == {"display_data", "execute_result"}
    for cell in notebook.cells[1:]:
        shown = [output["data"].get("text/markdown") or output["data"]["text/html"] for output in cell.outputs]
        assert [("Sent to Anna." in one, "Anna knows now." in one) for one in shown[:2]] == [(True, False), (False, True)]
        assert not any("Anna" in one for one in shown[2:])


if __name__ == "__main__":
    import asyncio

    import nbformat

    with TemporaryDirectory() as folder:
        nbformat.write(asyncio.run(executed(Path(folder))), NOTEBOOK)
    sys.stdout.write(f"{NOTEBOOK.relative_to(Path(os.getcwd()))} has its outputs\n")
