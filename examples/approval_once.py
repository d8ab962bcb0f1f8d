"""A call that was approved runs once, however often its history is resumed: a store in SQLite takes it, and keeps its result."""

import json
import sqlite3
from contextlib import closing
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools import ChatOpenAI, new_messages, pending_calls


class Claims:
    """One row for each call that was taken, with its result once there is one. All processes have the same database."""

    def _run(self, statement: str, *values: str) -> tuple[int, list[Any]]:
        with closing(sqlite3.connect("claims.db", timeout=30)) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, result TEXT)")
            cursor = database.execute(statement, values)
            return cursor.rowcount, cursor.fetchall()

    def take(self, key: str) -> Any:
        """Take a call: True; its result, where it was taken before; False, where what came of it is not known."""
        new, _ = self._run("INSERT OR IGNORE INTO claims (key) VALUES (?)", key)
        if new:
            return True
        _, rows = self._run("SELECT result FROM claims WHERE key = ?", key)
        return json.loads(rows[0][0]) if rows and rows[0][0] else False

    def done(self, key: str, message: dict[str, Any]) -> None:
        """Keep the result of a call."""
        self._run("UPDATE claims SET result = ? WHERE key = ?", json.dumps(message), key)

    def release(self, key: str) -> None:
        """Give back a call whose tool never began."""
        self._run("DELETE FROM claims WHERE key = ?", key)


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def main() -> None:
    """Approve a call, and resume its history twice, as a user does who clicks twice: one mail is sent, and both runs have its result."""
    model = ChatOpenAI(model="gpt-5", tools=[send_mail], requires_approval=["send_mail"], claim=Claims())
    history: list[BaseMessage] = [HumanMessage("Tell Anna by mail that dinner is at eight.")]
    history += new_messages(model.invoke(history))
    decisions = [call.approve() for call in pending_calls(history)]
    print(model.resume(history, decisions).text, model.resume(history, decisions).text)


if __name__ == "__main__":
    main()
