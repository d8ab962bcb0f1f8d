"""What is read of PostgreSQL, in statements."""

from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage

from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.testing import ScriptedChatModel
from tests.support.postgres import postgres
from tests.support.statements import statements

from .test_kills import needs_postgresql


def reply(messages: list[BaseMessage], **_: Any) -> str:
    """Answer with the number of messages."""
    return f"{len(messages)} messages."


@pytest.mark.kills
def test_sixteen_runs_that_have_ended_are_read_in_two_statements() -> None:
    """Their rows are in the schema that DBOS has in a PostgreSQL, in the database that it was launched with."""
    needs_postgresql()
    with postgres() as server:
        chats = Conversations(ScriptedChatModel(replies=reply), server.create("read"))
        launch()
        try:
            for _ in range(17):
                chats.result(chats.send("alice", "Hello"))
            with statements() as made:
                events = list(chats.events("alice"))
            assert len({event.position for event in events}) == len(events) >= 17 * 4
            assert sum("streams" in one for one in made) == 2 and len(made) == 7
        finally:
            shutdown()
