"""A call that was approved runs once, however often its history is resumed, in however many processes: `claim` notes it in SQLite."""

import sqlite3

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools import AlreadyResumedError, ChatOpenAI, new_messages, pending_calls

CLAIMS = "file:claims?mode=memory&cache=shared"  # a file's name, in a program that more than one process runs
KEEP = sqlite3.connect(CLAIMS, uri=True)  # what is in memory lives as long as a connection to it


def claim(key: str) -> bool:
    """Note a key in one step; False where it was noted before."""
    with sqlite3.connect(CLAIMS, uri=True, timeout=30) as database:
        database.execute("CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY)")
        return database.execute("INSERT OR IGNORE INTO claims VALUES (?)", (key,)).rowcount == 1


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def main() -> None:
    """Approve a call, and resume its history twice, as a user does who clicks twice."""
    model = ChatOpenAI(model="gpt-5", tools=[send_mail], requires_approval=["send_mail"], claim=claim)
    history: list[BaseMessage] = [HumanMessage("Tell Anna by mail that dinner is at eight.")]
    history += new_messages(model.invoke(history))
    decisions = [call.approve() for call in pending_calls(history)]
    print(model.resume(history, decisions).text)
    try:
        model.resume(history, decisions)
    except AlreadyResumedError as error:
        print(error)


if __name__ == "__main__":
    main()
