"""Durable runs and conversations, recorded by DBOS in a database: `durable(model, name)`, `Conversations(model, url)`.

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

`plain` is what is recorded, `journal` how, `recorded_texts` what keeps a large text from being stored twice; `event_rows` and `live` are
what is told and how it is written, `streams` and `reading` how it is read.
`engine` has DBOS in this process, `leases` what workers do for each other, `ending` when one of them ends, `executions` those that a
worker did not survive, `storage` how they wait for a full disk. `runs` and `conversations` are what users call, of which
`readable_conversations` is the half that reads; `conversation_runs` is how a conversation stands in the database, `ended_runs` what is
kept of it in memory, `incarnations` how one that was deleted begins anew, `conversation_reading` how its events are read,
`conversation_metadata` what is noted of it, `conversation_list` how it is found by that. `health` is how runs get on.
"""

from .conversation_list import ConversationInfo
from .conversation_runs import Sent
from .conversations import Conversations
from .engine import launch, shutdown
from .errors import RunFailedError
from .health import Health
from .message_history import ConversationHistory
from .runs import DurableModel, durable

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
