"""A worker whose runs wait inside a model that is given as a tool, killed at random moments, and what became of its calls."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_from_dict, messages_to_dict

from langchain_autotools import AlreadyResumedError, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel

CALLS = 6


def model(folder: Path) -> ScriptedChatModel:
    """A model that asks another one, which makes calls that need approval; each is claimed by a file."""

    def act(label: str) -> str:
        """Do something."""
        with (folder / "effects").open("a") as effects:
            effects.write(f"{label}\n")
        time.sleep(0.02)
        return f"did {label}"

    def claim(key: str) -> bool:
        try:
            (folder / key).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def reply(calls: list[Any]) -> Any:
        return lambda messages, **_: "Done." if messages[-1].type == "tool" else AIMessage("", tool_calls=calls)

    acts = [{"name": "act", "args": {"label": str(number)}, "id": f"call_{number}"} for number in range(CALLS)]
    inner = ScriptedChatModel(name="inner", tools=[act], requires_approval=True, replies=reply(acts))
    asks = [{"name": "inner", "args": {"question": "Go."}, "id": "call_0"}]
    return ScriptedChatModel(tools=[inner], replies=reply(asks), claim=claim)


def work(folder: Path) -> None:
    """Go on with the stored history until nothing waits: one call after another is approved."""
    stored = folder / "history"
    (folder / f"began {os.getpid()}").touch()
    while True:
        history: list[BaseMessage] = messages_from_dict(json.loads(stored.read_text())) if stored.exists() else [HumanMessage("Go.")]
        calls = pending_calls(history)
        if history[1:] and not calls:
            return
        try:
            run = model(folder).invoke(history, resume=[calls[0].approve()] if calls else None)
        except AlreadyResumedError:  # of a process that was killed in it: nobody knows what became of the call
            run = model(folder).resume(history, [calls[0].reject("It may have run.")])
        written = json.dumps(messages_to_dict([*history, *new_messages(run)]))
        (folder / "next").write_text(written)
        os.replace(folder / "next", stored)


def killed(folder: Path, seed: int, kills: int) -> Counter[str]:
    """Kill so many workers at random moments of their work, let another one end; returns how often each call ran."""
    chance = random.Random(seed)
    for number in range(kills + 1):
        with subprocess.Popen([sys.executable, "-m", "tests.kills.agents", str(folder)]) as worker:
            while not (folder / f"began {worker.pid}").exists() and worker.poll() is None:
                time.sleep(0.01)
            if number < kills:
                time.sleep(chance.uniform(0.0, 0.3))
                worker.send_signal(signal.SIGKILL)
    assert worker.returncode == 0
    return Counter((folder / "effects").read_text().split())


if __name__ == "__main__":
    work(Path(sys.argv[1]))
