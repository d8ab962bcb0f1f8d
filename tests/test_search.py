"""What new users type into the search of the documentation has the right page among its first three hits.

The site is built strictly, so a broken link fails it too, and its search index is ranked as Material for MkDocs ranks it in a browser. That
is lunr without stemming and without a penalty for long texts, with the boosts of fields and pages; each word that is typed may be the
beginning of one. Then a section of which all words match counts twice, the beginning of a page more. The sections of a page are one hit, at
the place of its best one. (Compared once with Material's own program in Node: the first three hits were the same, ties apart.)

The words and boosts of pages are in `docs/search.py`. Needs the extra `docs`; elsewhere it is skipped.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.house

REPOSITORY = Path(__file__).resolve().parent.parent
HITS = 3
QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("retry failed request", "chat_openai", "howto/policies", "policies"),
    ("rate limit", "errors", "chat_openai", "howto/failover"),
    ("timeout", "howto/policies", "policies", "chat_openai"),
    ("tool timeout", "howto/policies", "policies"),
    ("stop a running tool", "howto/stopping"),
    ("cancel a run", "howto/stopping"),
    ("how do I approve a tool call", "howto/approvals"),
    ("human in the loop", "howto/approvals"),
    ("max iterations", "messages", "howto/cost", "howto/from_agent_executor"),
    ("limit number of tool calls", "messages", "howto/cost", "howto/policies"),
    ("stream to browser fastapi", "howto/web"),
    ("server sent events", "howto/web", "web"),
    ("vercel ai sdk", "ai_sdk", "howto/web"),
    ("ag-ui", "ag_ui", "howto/web"),
    ("use ollama", "chat_ollama"),
    ("azure", "azure_chat_openai"),
    ("claude", "chat_anthropic"),
    ("gemini", "chat_google_generative_ai"),
    ("openrouter", "chat_openrouter"),
    ("deepseek", "chat_deepseek"),
    ("bedrock", "providers"),
    ("vllm", "chat_openai", "presets", "howto/troubleshooting"),
    ("local model without api key", "local_model"),
    ("test without api key", "tutorial/tests", "testing", "local_model"),
    ("mock model in unit tests", "tutorial/tests", "testing"),
    ("structured output with tools", "tutorial/first_tool", "howto/output_retries", "chat_openai", "howto/agent"),
    ("pydantic", "tutorial/first_tool", "howto/output_retries", "tools"),
    ("context too long", "howto/context"),
    ("summarize old messages", "howto/context"),
    ("cost of a run", "howto/cost", "cost"),
    ("count tokens", "howto/cost", "cost"),
    ("prompt caching", "howto/cost", "cost", "chat_anthropic"),
    ("mcp", "howto/mcp", "tutorial/mcp", "mcp"),
    ("mcp oauth login", "mcp", "howto/mcp"),
    ("notebook", "howto/notebooks"),
    ("jupyter", "howto/notebooks"),
    ("chat ui", "howto/chat_page"),
    ("memory between questions", "tutorial/history", "howto/agent", "howto/conversations"),
    ("save conversation in database", "howto/conversations"),
    ("resume after crash", "howto/durable"),
    ("langgraph", "tutorial/langgraph"),
    ("migrate from create_agent", "howto/from_create_agent"),
    ("AgentExecutor", "howto/from_agent_executor"),
    ("multiple agents", "howto/agents_as_tools"),
    ("fallback model", "howto/failover"),
    ("async", "tutorial/asynchronous"),
    ("images", "tutorial/images", "media"),
    ("pdf", "media"),
    ("system prompt", "howto/agent"),
    ("tool with access to user id", "howto/context_and_progress", "tools"),
    ("progress bar", "howto/context_and_progress", "howto/scale_out"),
    ("many prompts in parallel", "howto/scale_out"),
    ("tool not found", "howto/troubleshooting"),
    ("deploy with gunicorn", "howto/deploy", "deploy"),
    ("proxy", "chat_openai", "howto/deploy", "deploy"),
    ("add a new provider", "own_model", "howto/port_stream", "providers"),
    ("retries", "howto/policies", "chat_openai", "policies"),
    ("429 too many requests", "errors", "chat_openai", "howto/failover"),
    ("stop generation", "howto/stopping"),
    ("require confirmation before tool runs", "howto/approvals"),
    ("websocket", "howto/web", "web"),
    ("react frontend", "ai_sdk", "howto/web", "howto/chat_page", "ag_ui"),
    ("ollama context window", "chat_ollama", "howto/context"),
    ("azure openai deployment", "azure_chat_openai"),
    ("anthropic thinking", "chat_anthropic"),
    ("json schema output", "schemas", "howto/output_retries", "tutorial/first_tool"),
    ("token usage", "howto/cost", "cost", "messages"),
    ("price", "howto/cost", "cost"),
    ("mcp server stdio", "howto/mcp", "mcp", "tutorial/mcp"),
    ("multi turn conversation", "tutorial/history", "howto/agent", "howto/conversations"),
    ("postgres", "howto/conversations", "conversations", "howto/durable", "durable", "howto/deploy"),
    ("checkpointer", "howto/langgraph_checkpointers"),
    ("langchain middleware", "howto/middleware"),
    ("create_react_agent", "howto/from_create_agent", "howto/from_agent_executor", "tutorial/langgraph"),
    ("handoff to another agent", "howto/agents_as_tools"),
    ("async tools", "tutorial/asynchronous", "tools"),
    ("send a picture", "tutorial/images", "media"),
    ("voice", "media"),
    ("logging", "howto/tracing"),
    ("langsmith", "howto/tracing"),
    ("langfuse", "howto/tracing"),
    ("opentelemetry traces", "howto/tracing"),
    ("api key", "chat_openai", "chat_anthropic", "tutorial/first_tool", "security", "local_model"),
    ("base_url", "chat_openai", "presets", "howto/troubleshooting"),
    ("command line", "cli"),
    ("parallel tool calls", "tools", "howto/policies", "chat_openai"),
    ("cache tool results", "howto/policies", "policies"),
    ("error handling in tools", "errors", "tools", "howto/policies"),
    ("bash tool", "howto/handlers", "howto/files"),
    ("web search", "howto/vendor_events", "chat_openai", "chat_anthropic"),
    ("what models are supported", "supports", "providers"),
    ("install", "index", "tutorial/first_tool"),
    ("security prompt injection", "security"),
    ("change system prompt per turn", "howto/turn_hooks", "howto/agent"),
    ("dynamic tools", "howto/turn_hooks", "tools"),
    ("streaming", "tutorial/streaming"),
    ("groq", "chat_groq"),
    ("openai compatible server", "chat_openai", "openai_endpoint"),
    ("mistral", "chat_mistralai"),
    ("dask", "howto/scale_out"),
    ("kubernetes", "howto/deploy", "deploy"),
    ("unit testing", "testing", "tutorial/tests"),
    ("upgrade version", "upgrading"),
)
"""What is typed, and the pages that answer it."""


class Search:
    """The search of a site.

    Args:
        index: What `search_index.json` of the site has.
    """

    def __init__(self, index: dict[str, Any]) -> None:
        from lunr.builder import Builder
        from lunr.stop_word_filter import stop_word_filter

        self.separator = re.compile(index["config"]["separator"])
        self.docs = {doc["location"]: doc for doc in index["docs"]}
        builder = Builder()
        builder.b(0)
        builder.ref("location")
        builder.pipeline.add(stop_word_filter)
        for name, field in index["config"]["fields"].items():
            builder.field(name, boost=field["boost"], extractor=lambda doc, name=name: self.tokens(doc.get(name)))
        for doc in index["docs"]:
            builder.add(doc, {"boost": doc.get("boost", 1)})
        self.index = builder.build()

    def tokens(self, value: str | list[str] | None) -> list[str]:
        """The words of a field: what is between its tags, split at the separators."""
        texts = value if isinstance(value, list) else [value or ""]
        pieces = (piece for text in texts for piece in re.split(r"<[^>]*>", text))
        return [word.lower() for piece in pieces for word in self.words(piece)]

    def words(self, text: str) -> Iterator[str]:
        """The words of a text; a separator may have no width."""
        begin = 0
        for found in self.separator.finditer(text):
            if begin < found.start():
                yield text[begin : found.start()]
                begin = found.start()
            begin = found.end()
        if begin < len(text):
            yield text[begin:]

    def pages(self, typed: str) -> list[str]:
        """The pages that are shown for what is typed, the first hit first."""
        from lunr.query import Query
        from lunr.stop_word_filter import WORDS

        terms = list(dict.fromkeys(word.lower() for word in self.words(typed)))
        whole = {part.lower() for word in typed.split() for part in word.split("-")[:-1]}
        query = self.index.create_query()
        for term in terms:
            query.term(term, wildcard=Query.WILDCARD_NONE if term in whole else Query.WILDCARD_TRAILING, use_pipeline=False)
        found: dict[str, float] = {}
        for match in self.index.query(query):
            page, is_section = match["ref"].split("#")[0], "#" in match["ref"]
            said = {term: any(word.startswith(term) for word in match["match_data"].metadata) for term in terms}
            counted = [hit for term, hit in said.items() if hit or term not in WORDS]
            boost = (not is_section) + sum(counted) / len(counted)
            found[page] = max(found.get(page, 0), match["score"] * (1 + boost**2))
        return sorted(found, key=lambda page: -found[page])


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """The search of the site as it is built."""
    for needed in ("mkdocs", "material", "mkdocstrings", "lunr"):
        pytest.importorskip(needed, reason="needs the extra `docs`")
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    subprocess.run(command, cwd=REPOSITORY, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return Search(json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8")))


def test_a_question_has_its_page_among_the_first_hits(search: Search) -> None:
    """One of the pages that answer it, for each question."""
    hits = {typed: [page.removesuffix(".html") for page in search.pages(typed)[:HITS]] for typed, *_ in QUESTIONS}
    missed = [f"{typed!r} finds {', '.join(hits[typed])}" for typed, *right in QUESTIONS if not set(hits[typed]) & set(right)]
    assert not missed, "\n".join(missed)


def test_a_page_of_the_table_is_a_page_of_the_site(search: Search) -> None:
    """A question whose page was renamed would be answered by nothing."""
    pages = {location.split("#")[0].removesuffix(".html") for location in search.docs}
    assert {page for _, *right in QUESTIONS for page in right} <= pages
