"""Words of the search: a hook of MkDocs that tells the search index what people type for a page, and which pages are for few of them.

Material for MkDocs reads both from a page's metadata (`search: boost`, `tags`); here they are in one table, beside the pages that are written
by commands too. `tests/test_search.py` asks questions.
"""

from typing import Any

BOOSTS = {"For contributors": 0.05, "Reference": 0.2}
"""By the tab of a page; every other page has 1."""

WORDS = {
    "chat_openai.md": "openai, gpt, vllm, retry, proxy, rate limit",
    "errors.md": "exception, rate limit",
    "howto/agent.md": "system prompt, memory",
    "howto/agents_as_tools.md": "subagents, multi agent, delegate",
    "howto/approvals.md": "approve, confirm, human in the loop, permission",
    "howto/chat_page.md": "chat ui, gradio",
    "howto/context.md": "context length, summarize, trim, compact",
    "howto/context_and_progress.md": "user id, runtime, state",
    "howto/conversations.md": "database, memory, persist",
    "howto/cost.md": "price, budget, max iterations",
    "howto/deploy.md": "production, gunicorn, uvicorn, docker",
    "howto/durable.md": "crash, restart, resume",
    "howto/failover.md": "fallback, outage",
    "howto/notebooks.md": "jupyter, marimo, colab",
    "howto/output_retries.md": "pydantic, validate",
    "howto/policies.md": "retry, timeout",
    "howto/scale_out.md": "batch, parallel",
    "howto/stopping.md": "cancel, abort, interrupt",
    "howto/troubleshooting.md": "not working, debug, not found",
    "howto/web.md": "fastapi, sse, server sent events, browser",
    "local_model.md": "offline, without api key",
    "media.md": "pdf, audio, video",
    "messages.md": "max iterations, stop reason",
    "own_model.md": "custom provider",
    "testing.md": "mock, fake, unit test",
    "tools.md": "inject",
    "tutorial/history.md": "memory",
    "tutorial/tests.md": "mock, fake, unit test, without api key",
}
"""What people type for a page besides its own words, comma-separated; a word here weighs like one of its title."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Give a page its boost and its words."""
    tab = page.ancestors[-1].title if page.ancestors else ""
    page.meta["search"] = {"boost": BOOSTS.get(tab, 1)}
    if words := WORDS.get(page.file.src_uri):
        page.meta["tags"] = words.split(", ")


def on_files(files: Any, **_: Any) -> None:
    """Raise if a page of the table is gone."""
    if gone := WORDS.keys() - files.src_uris.keys():
        raise SystemExit(f"docs/search.py has words for pages that are not there: {', '.join(sorted(gone))}")
