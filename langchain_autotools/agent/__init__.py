"""`Agent`: a chat model that runs its tools, with a system prompt and a conversation, in one object.

It owns no loop: every question is one run of the model. `agent` is what users call. `exchange` is one question and what comes of it,
`floor` lets one question at a time into a conversation, `memory` keeps the conversation. `streams` are answers that are read piece by
piece, `attachments` are what a question comes with.
"""

from .agent import Agent
from .exchange import AgentResult, AgentStream, AsyncAgentStream

__all__ = ["Agent", "AgentResult", "AgentStream", "AsyncAgentStream"]
