"""What cloudpickle, which Dask and Ray use, takes beyond pickle: functions by their code, wherever they are."""

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from langchain_autotools.testing import ScriptedChatModel
from tests.support.pages import REPOSITORY

PROGRAM = """
import sys
import cloudpickle
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_autotools import ToolExecutor
from langchain_autotools.testing import ScriptedChatModel

@tool
def decorated(n: int) -> int:
    "Twice."
    return 2 * n

def plain(n: int) -> int:
    "Thrice."
    return 3 * n

def calling(messages, **_):
    calls = [{"name": name, "args": {"n": 7}, "id": name} for name in ("decorated", "plain", "short")]
    return messages[-1].text if messages[-1].type == "tool" else AIMessage("", tool_calls=calls)

offset, heard = 4, []
tools = {"decorated": decorated, "plain": plain, "short": lambda n: n + offset}
for given in (tools, ToolExecutor(tools)):
    rules = {"on_executed": lambda result: heard.append(result), "approve": lambda call: call.approve()}
    model = ScriptedChatModel(replies=calling, tools=given, **rules)
    cloudpickle.dump(model, open(sys.argv[1], "wb"))
    print(repr(model.invoke("Go.").text))
"""


@pytest.mark.scale
def test_a_whole_program_travels(tmp_path: Path) -> None:
    """Its decorated tools, functions, lambdas and what they close over work where its `__main__` is another program."""
    pytest.importorskip("cloudpickle")
    reader = "import pickle, sys; print(repr(pickle.load(open(sys.argv[1], 'rb')).invoke('Go.').text))"
    said = []
    for code in (PROGRAM, reader):
        command = [sys.executable, "-c", code, str(tmp_path / "model")]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        said += done.stdout.split()
    assert said == ["'11'"] * 3


@pytest.mark.scale
def test_what_it_cannot_write_is_named() -> None:
    """A function that holds a lock; the same text as of pickle."""
    cloudpickle = pytest.importorskip("cloudpickle")
    lock = threading.Lock()
    with pytest.raises(pickle.PicklingError, match=r"ScriptedChatModel: tools\['held'\] cannot be pickled"):
        cloudpickle.dumps(ScriptedChatModel(tools={"held": lambda n: bool(lock)}))
