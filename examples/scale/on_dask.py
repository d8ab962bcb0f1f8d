"""Tickets labelled on Dask: a whole run, its tool calls included, is one task. Needs OPENAI_API_KEY and `dask[distributed]`.

Where a worker dies, Dask gives its unfinished tasks to the others, so a label may be saved twice: count by ticket, or save by key.
"""

import os

from dask.distributed import Client, as_completed
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI

LEDGER = os.environ.get("LEDGER", "labels.tsv")


@tool
def save_label(ticket: int, label: str) -> str:
    """Save the label of a ticket."""
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(f"{ticket}\t{label}\n")
    return "saved"


def label(client: Client, tickets: int) -> list[str]:
    """What the model says of each ticket, in order."""
    model = ChatOpenAI(model="gpt-5", tools=[save_label])
    prompts = [f"Label ticket {number}: the parcel has not come." for number in range(tickets)]
    runs = client.map(model.invoke, prompts, pure=False)
    places, texts = {run.key: place for place, run in enumerate(runs)}, [""] * tickets
    for run, message in as_completed(runs, with_results=True):
        texts[places[run.key]] = message.text
        run.release()  # else a worker that dies takes finished answers along, and they are asked for again
    return texts


if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=8) as client:
        print(len(label(client, 20)), "tickets are labelled")
