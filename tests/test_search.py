"""What new users type into the search of the documentation has the right page among its first three hits.

The site is built as `.ci/run` builds it (strictly, so that a broken link fails it too), and its search index is ranked as Material for MkDocs
ranks it in a browser: lunr without stemming and without a penalty for long texts, the titles before the texts, the boosts of the pages, each
word the beginning of one; then a section of which all words match counts twice, a page's own beginning more, and the sections of a page are one
hit, at the place of its best one. Needs the extra `docs`; elsewhere it is skipped.
"""

import json
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

        terms = list(dict.fromkeys(word.lower() for part in typed.split() for word in self.words(part)))
        query = self.index.create_query()
        for term in terms:
            query.term(term, wildcard=Query.WILDCARD_TRAILING, use_pipeline=False)
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
    subprocess.run(command, cwd=REPOSITORY, check=True, env={**__import__("os").environ, "NO_MKDOCS_2_WARNING": "1"})
    return Search(json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8")))
