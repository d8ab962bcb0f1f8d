"""A hook of MkDocs: tells the search index what people type for a page, and which pages only few people look for.

Material for MkDocs reads both from a page's metadata (`search: boost` and `tags`). Here they are in one place, for pages that commands
write too. `tests/test_search.py` asks the search.
"""

from typing import Any

BOOSTS = {"For contributors": 0.05, "Reference": 0.1}
"""By the tab of a page; every other page has 1."""

WORDS = {
    "ai_sdk.md": "react, next.js, vercel",
    "chat_openai.md": "openai, gpt, vllm, retry, proxy, base_url, rate limit, 429",
    "errors.md": "exception, rate limit, 429",
    "howto/agent.md": "system prompt, memory",
    "howto/agents_as_tools.md": "subagents, multi agent, delegate, handoff",
    "howto/approvals.md": "approve, confirm, confirmation, human in the loop, permission",
    "howto/chat_page.md": "chat ui, gradio, frontend",
    "howto/context.md": "context length, summarize, trim, compact",
    "howto/context_and_progress.md": "user id, runtime, state",
    "howto/conversations.md": "database, memory, persist",
    "howto/cost.md": "price, budget, max iterations, token usage",
    "howto/deploy.md": "production, gunicorn, uvicorn, docker, kubernetes",
    "howto/durable.md": "crash, restart, resume",
    "howto/failover.md": "fallback, outage",
    "howto/files.md": "filesystem, edit files",
    "howto/from_create_agent.md": "create_react_agent",
    "howto/handlers.md": "bash, shell, computer use",
    "howto/notebooks.md": "jupyter, marimo, colab",
    "howto/output_retries.md": "pydantic, validate",
    "howto/policies.md": "retry, timeout",
    "howto/scale_out.md": "batch, parallel",
    "howto/stopping.md": "cancel, abort, interrupt",
    "howto/tracing.md": "langsmith, langfuse, opentelemetry, observability, logging",
    "howto/troubleshooting.md": "not working, debug, not found",
    "howto/turn_hooks.md": "dynamic tools",
    "howto/web.md": "fastapi, sse, server sent events, browser, websocket, frontend",
    "local_model.md": "offline, without api key",
    "media.md": "pdf, audio, video, voice, speech",
    "messages.md": "max iterations, stop reason",
    "own_model.md": "custom provider",
    "supports.md": "supported models",
    "testing.md": "mock, fake, unit test",
    "tools.md": "inject, parallel",
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
