"""`examples/approval_once.py`: two mails, a process that is killed while it sends the second one, and the run after it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, messages_from_dict, messages_to_dict

from langchain_autotools import claims, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel

pytest.importorskip("sqlalchemy", reason="needs the extra `durable`")

REPOSITORY = Path(__file__).resolve().parents[2]
CALLING = AIMessage("", tool_calls=[{"id": to, "name": "send_mail", "args": {"to": to, "text": "Dinner."}} for to in ("Anna", "Bert")])


def model(send_mail: Any) -> ScriptedChatModel:
    """A model that sends two mails, one after the other, with the store of the example."""
    rules: dict[str, Any] = {"requires_approval": True, "parallel": False, "claim": claims("sqlite:///claims.db")}
    return ScriptedChatModel(replies=[CALLING, "Done."], tools=[send_mail], **rules)


def _dying() -> None:
    """Resume, and be killed while the second mail is sent."""

    def send_mail(to: str, text: str) -> str:
        """Send a mail."""
        with Path("sent.txt").open("a", encoding="utf-8") as sent:
            sent.write(f"{to}\n")
        if to == "Bert":
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)
        return f"Sent to {to}."

    said = json.load(sys.stdin)
    model(send_mail).resume(messages_from_dict(said["history"]), said["decisions"])


@pytest.mark.further
def test_a_call_that_was_running_when_its_process_was_killed_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What had a result has it still; of the other one the model is told that it was taken, and that its outcome is not known."""
    monkeypatch.chdir(tmp_path)
    sent: list[str] = []

    def send_mail(to: str, text: str) -> str:
        """Send a mail."""
        sent.append(to)
        return f"Sent to {to}."

    ours = model(send_mail)
    history = [HumanMessage("Invite them."), *new_messages(ours.invoke("Invite them."))]
    decisions = [call.approve().to_dict() for call in pending_calls(history)]
    command = [sys.executable, "-c", "from tests.compositions.test_approval_once import _dying; _dying()"]
    data = json.dumps({"history": messages_to_dict(history), "decisions": decisions})
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"}
    killed = subprocess.run(command, input=data, text=True, env=environment, check=False, capture_output=True)
    assert (killed.returncode, Path("sent.txt").read_text(encoding="utf-8")) == (-9, "Anna\nBert\n")
    new = new_messages(ours.resume(history, decisions))
    assert [one.text for one in new[::2]] == ["Sent to Anna.", "Done."]
    assert "its outcome is not known" in new[1].text
    assert sent == []
