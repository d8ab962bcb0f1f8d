"""One turn of a graph over a SQLite file, in a process of its own.

`python -m tests.compat.checkpointed_turn FILE LOG dies|asks DURABILITY`: `dies` is killed in the request after its last call, `asks` ends
when the graph asks for approval.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_autotools.testing import ScriptedChatModel
from tests.compositions.test_approvals import approving_graph
from tests.support.checkpoints import QUESTION, THREAD, one_node
from tests.support.desk import asking, call

PEOPLE = ["Anna", "Ben", "Cem"]


def sends(log: Path, dies: bool = False, **fields: Any) -> ScriptedChatModel:
    """A model that sends to three people, one after another; each time is a line of the log."""

    def send(to: str) -> str:
        """Send."""
        with log.open("a") as file:
            file.write(f"{to}\n")
        return f"Sent to {to}."

    def reply(messages: list[Any], **_: Any) -> Any:
        sent = sum(message.type == "tool" for message in messages)
        if sent < len(PEOPLE):
            return asking(call("send", f"{sent}", to=PEOPLE[sent]))
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return "Done."

    return ScriptedChatModel(tools=[send], replies=reply, **fields)


def main(file: str, log: str, what: str, durability: Any) -> None:
    """Run the turn."""
    with SqliteSaver.from_conn_string(file) as saver:
        if what == "dies":
            app = one_node(sends(Path(log), dies=True), saver)
        else:
            app = approving_graph(sends(Path(log), requires_approval=["send"]), saver)
        app.invoke(QUESTION, THREAD, durability=durability)


if __name__ == "__main__":
    main(*sys.argv[1:])
