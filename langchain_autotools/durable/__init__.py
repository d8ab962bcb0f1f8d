"""Runs that outlive their process, recorded by DBOS in a database: `durable(model, name)`, `Conversations(model, url)`.

A run is one workflow. The run loop is what it always is; it is replayed from the start whenever the run goes on, and asks a journal where
it would make a request or run a tool. The journal answers what an earlier execution recorded, or has it done and records it:

- **A turn** is one step. Its output is the turn's message, or why there is none; text leaves while the step runs.
- **A call** is two steps: who began it, and what it came to. Where the first is there and the second is not, the call was running when
  its process died: it is answered as interrupted. A call of a tool that is named in `rerun` has the second step only. The steps of a
  turn's calls are reserved in call order before any of them begins. (Steps take their numbers as they begin; calls that run in parallel
  were seen to get each other's results after a crash. A child workflow for each call has the same order, but is recovered by itself,
  without the conversation that its tool may ask for.)
- **Events** are written to the workflow's stream by a step that lasts as long as the run, in batches, each with the execution that tells
  it. Each execution tells all again; a reader takes each thing once.
- **Time** is that of the journal: while it is read, what time it was when it was written. So a run that goes on decides as it did before.

What is recorded is plain JSON. (DBOS reads a row in the form that the row names, pickles too: whoever writes to the database runs code in
the workers.) Models and keys are no part of it: every worker makes its own models, by the same names. An execution that has lost its run
to another worker notices at its next record, before it runs the next call.

`stored` is the form in which values are recorded; `journal` records turns, calls and events, and keeps a large text from being stored
twice; `run_reader` reads the events of a run. `engine` is DBOS in this process, with what is kept of conversations
in memory; `workers` is what becomes of runs whose worker ends, falls silent, crashes repeatedly or has a full disk. `runs` and
`conversations` are what users call. `conversation_runs` is what each run of a conversation is asked, how they are kept in the database, how
a deleted conversation begins anew, and how they get on. `conversation_reader` reads a conversation's events, notes its owner, labels and
title, and finds it by them.
"""

from .conversation_reader import ConversationInfo
from .conversation_runs import Health, Sent
from .conversations import ConversationHistory, Conversations
from .engine import launch, shutdown
from .runs import DurableModel, durable
from .stored import RunFailedError

__all__ = [
    "ConversationHistory",
    "ConversationInfo",
    "Conversations",
    "DurableModel",
    "Health",
    "RunFailedError",
    "Sent",
    "durable",
    "launch",
    "shutdown",
]
