"""Processes that resume one conversation at once with `claims(url)`, killed with SIGKILL or stopped with SIGSTOP at random moments.

python -m tests.kills.claims --kills 300 [--database postgresql]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_from_dict, messages_to_dict

from langchain_autotools import AlreadyResumedError, claims, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel
from tests.support.postgres import postgres

_WARM = ("run.claimed_turn", "run.inner_runs", "executor.batch_drivers", "claim_database")  # what each process would import anew
PAID = ("Anna", "Bert", "inside")
_RESUMED = 3


def model(url: str, folder: Path, pause: float) -> ScriptedChatModel:
    """A model that pays two people, and asks another one, which pays a third; then it notes that."""

    def happen(what: str) -> None:
        with (folder / "effects").open("a") as effects:
            effects.write(f"{what}\n")
        time.sleep(pause)

    def pay(to: str) -> str:
        """Pay somebody."""
        happen(to)
        return f"paid {to}"

    def note(text: str) -> str:
        """Note something."""
        happen(text)
        return "noted"

    def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
        return {"name": name, "args": args, "id": call_id, "type": "tool_call"}

    def replying(*calls: dict[str, Any], noted: str) -> Callable[..., Any]:
        turns = [AIMessage("", tool_calls=list(calls)), AIMessage("", tool_calls=[call("note", f"{noted}_n", text=noted)]), "Done."]
        return lambda messages, **_: turns[min(2, sum(isinstance(message, AIMessage) for message in messages))]

    rule: dict[str, Any] = {"requires_approval": ["pay"]}
    helper = ScriptedChatModel(name="helper", tools=[pay, note], replies=replying(call("pay", "i", to="inside"), noted="in"), **rule)
    calls = [call("pay", "a", to="Anna"), call("helper", "h", question="Pay."), call("pay", "b", to="Bert")]
    return ScriptedChatModel(tools=[pay, note, helper], replies=replying(*calls, noted="out"), claim=claims(url), **rule)


def forked(work: Callable[[], Any]) -> int:
    """Do something in a process of its own, which has this one's modules; returns its id."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        work()
        status = 0
    except AlreadyResumedError:
        status = _RESUMED
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def resume(url: str, folder: Path, pause: float, name: str) -> None:
    """Approve all that waits, and write down what came of it."""
    history = messages_from_dict(json.loads((folder / "history").read_text()))
    decisions = [call.approve() for call in pending_calls(history)]
    new = new_messages(model(url, folder, pause).resume(history, decisions))
    (folder / f"{name}.part").write_text(json.dumps(messages_to_dict(new)))
    os.replace(folder / f"{name}.part", folder / name)


def ask(url: str, folder: Path) -> None:
    """Run up to the calls that wait, and write the history down."""
    history: list[BaseMessage] = [HumanMessage("Pay them.")]
    history += new_messages(model(url, folder, 0.0).invoke(history))
    (folder / "history").write_text(json.dumps(messages_to_dict(history)))


def ended(process: int) -> int:
    """How a process has ended."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def disturbed(processes: Sequence[int], chance: random.Random, pause: float) -> int:
    """Kill or stop some of these processes at random moments; what was stopped goes on later. Returns how many of both there were."""
    moments = sorted((chance.uniform(0, 0.2 + 12 * pause), process) for process in processes if chance.random() < 0.8)
    began, stopped = time.monotonic(), list[int]()
    for moment, process in moments:
        time.sleep(max(0.0, began + moment - time.monotonic()))
        kind = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP])
        os.kill(process, kind)
        stopped += [process] if kind == signal.SIGSTOP else []
    time.sleep(chance.uniform(0, 0.2))
    for process in stopped:
        os.kill(process, signal.SIGCONT)
    return len(moments)


def conversation(url: str, folder: Path, seed: int) -> int:
    """One conversation, resumed by several processes at once and by one afterwards; returns how many were killed or stopped."""
    chance = random.Random(seed)
    folder.mkdir()
    assert ended(forked(lambda: ask(url, folder))) == 0
    pause = chance.choice([0.0, 0.02])
    names = [f"resume {number}" for number in range(chance.randint(1, 4))]
    processes = [forked(lambda name=name: resume(url, folder, pause, name)) for name in names]  # type: ignore[misc]
    disturbances = disturbed(processes, chance, pause)
    statuses = [ended(process) for process in processes]
    assert all(status in (0, _RESUMED, -signal.SIGKILL) for status in statuses), statuses
    assert ended(forked(lambda: resume(url, folder, 0.0, "last"))) == 0
    last = json.loads((folder / "last").read_text())
    assert all(said(json.loads((folder / name).read_text())) == said(last) for name in names if (folder / name).exists())
    happened = Counter((folder / "effects").read_text().split())
    killed = statuses.count(-signal.SIGKILL)
    assert all(happened[to] <= 1 for to in PAID), happened
    unknown = sum("outcome is not known" in text for text in said(last))
    assert unknown <= 3 * killed
    assert happened["Anna"] + happened["Bert"] + unknown >= 2
    assert 1 <= happened["out"] <= 1 + killed and happened["in"] <= 1 + killed
    return disturbances


def said(messages: Sequence[Any]) -> list[str]:
    """What stored messages say."""
    return [str(one["data"]["content"]) for one in messages]


def figures(kills: int, database: str) -> dict[str, Any]:
    """Conversations until so many processes were killed or stopped."""
    began = time.monotonic()
    for module in [*(f"langchain_autotools.{name}" for name in _WARM), "filelock", "psycopg", "sqlalchemy.dialects.sqlite.pysqlite"]:
        import_module(module)
    with tempfile.TemporaryDirectory() as name, postgres() if database == "postgresql" else nullcontext() as server:
        folder, count, seed = Path(name), 0, 0
        url = f"sqlite:///{folder}/claims.db" if server is None else server.create("claims")
        while count < kills:
            count += conversation(url, folder / str(seed), seed)
            seed += 1
    return {"conversations": seed, "disturbed": count, "seconds": round(time.monotonic() - began)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    options = parser.parse_args()
    print(json.dumps(figures(options.kills, options.database)))
