"""Tickets labelled on DBOS's queue: each ticket is a conversation of one message, which any worker answers. Needs OPENAI_API_KEY and the
extra `durable`; `python on_dbos.py work` is one more worker, on this machine or, with PostgreSQL in DATABASE_URL, on another one.

Where a worker dies, the others go on with its runs: what is recorded is not done again. A label that was being saved is saved again, as
`rerun` says; so count by ticket, or save by key.
"""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI
from langchain_autotools.durable import Conversations, Sent, launch

LEDGER = os.environ.get("LEDGER", "labels.tsv")
DATABASE = os.environ.get("DATABASE_URL", "sqlite:///tickets.sqlite")


@tool
def save_label(ticket: int, label: str) -> str:
    """Save the label of a ticket."""
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(f"{ticket}\t{label}\n")
    return "saved"


def conversations(max_concurrency: int) -> Conversations:
    """The tickets, in a process that answers so many at a time."""
    model = ChatOpenAI(model="gpt-5", tools=[save_label])
    return Conversations(model, DATABASE, name="tickets", rerun=["save_label"], max_concurrency=max_concurrency)


def work() -> None:
    """Answer what is sent, until the process ends."""
    conversations(8)
    launch(lease=10)
    threading.Event().wait()


def label(tickets: int) -> list[str]:
    """What the model says of each ticket, in order. Once more, after a crash of this process, it sends nothing twice."""
    chats = conversations(0)

    def send(number: int) -> Sent:
        prompt = HumanMessage(f"Label ticket {number}: the parcel has not come.", id=f"ticket {number}")
        return chats.send(f"ticket {number}", prompt)

    with ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(send, range(tickets)))
    return [chats.result(one).text for one in sent]


if __name__ == "__main__":
    if sys.argv[1:] == ["work"]:
        work()
    else:
        workers = [subprocess.Popen([sys.executable, __file__, "work"]) for _ in range(2)]
        print(len(label(20)), "tickets are labelled")
        for worker in workers:
            worker.terminate()
