"""Tickets labelled on Ray: a whole run, its tool calls included, is one task. Needs OPENAI_API_KEY and `ray`.

Where a machine dies, Ray gives its unfinished tasks to the others, so a label may be saved twice: count by ticket, or save by key.
"""

import os
from typing import Any

import ray
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI

LEDGER = os.environ.get("LEDGER", "labels.tsv")


@tool
def save_label(ticket: int, label: str) -> str:
    """Save the label of a ticket."""
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(f"{ticket}\t{label}\n")
    return "saved"


def answers(model: ChatOpenAI, prompts: list[Any]) -> list[str]:
    """The answers to some prompts, asked for side by side."""
    return [run.text for run in model.batch(prompts, {"max_concurrency": 8})]


def label(tickets: int) -> list[str]:
    """What the model says of each ticket, in order."""
    model = ray.put(ChatOpenAI(model="gpt-5", tools=[save_label]))
    prompts = [f"Label ticket {number}: the parcel has not come." for number in range(tickets)]
    task = ray.remote(max_retries=3)(answers)  # a process per task: several prompts keep it busy
    parts = [task.remote(model, prompts[start : start + 8]) for start in range(0, tickets, 8)]
    return [text for part in ray.get(parts) for text in part]


if __name__ == "__main__":
    ray.init()
    print(len(label(20)), "tickets are labelled")
