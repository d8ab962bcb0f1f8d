"""A run that waits inside a model that is given as a tool goes on in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, messages_from_dict, messages_to_dict

from langchain_autotools import new_messages, pending_calls
from tests.kills import agents


@pytest.mark.further
def test_another_process_goes_on_with_what_was_stored(tmp_path: Path) -> None:
    """It knows the history alone; each call that was approved runs there, once."""
    first = agents.model(tmp_path).invoke([HumanMessage("Go.")])
    assert len(pending_calls(first)) == agents.CALLS and not (tmp_path / "effects").exists()
    (tmp_path / "history").write_text(json.dumps(messages_to_dict([HumanMessage("Go."), *new_messages(first)])))
    subprocess.run([sys.executable, "-m", "tests.kills.agents", str(tmp_path)], check=True, timeout=60)
    history = messages_from_dict(json.loads((tmp_path / "history").read_text()))
    assert history[-1].text == "Done." and pending_calls(history) == []
    assert sorted((tmp_path / "effects").read_text().split()) == [str(number) for number in range(agents.CALLS)]
