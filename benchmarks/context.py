"""What a long run sends, here and at peers: `python -m benchmarks.context [--only NAME ...]`. Prints a table.

One scripted world for all: a tool gives 60 pages of 7,800 characters, each of them once, then another one is asked 60 short questions:
120 requests. The pages hold 200 facts, which are nowhere else. The model is a server on loopback, the same for all, that records every
request. Its calls are the same whatever it is sent; asked for a summary it writes one with the facts that it is shown, as many as 3,000
characters hold. After the 120 requests it looks for each fact: in the request, else by one call of a tool that reads what was left out
(`read_result` here, `grep` of deepagents).

A request's characters are those of its tools and messages, as JSON; the window is 40,000 tokens of 4 characters, and nothing is refused.
The prefix breaks where a request does not begin with the one before it. Outside of the cached prefix is what a request has behind the
longest beginning that any earlier one had, message by message.

Peers are LangChain's `create_agent` with its own middleware, and `deepagents`; one that is not installed has no row.
"""

import argparse
import importlib.util
import json
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PAGES, QUESTIONS, FACTS, LENGTH = 60, 60, 200, 7_800
CHARACTERS = 4
"""Characters of a token, as the server counts them and as LangChain estimates them."""
WINDOW = 40_000
"""The context window in tokens, as the models' profiles say it. No request is refused."""
SUMMARY = 3_000
TASK = "Read all pages of the survey with next_page, then answer what you are asked."
_WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "juniper"),
    *("knoll", "larch", "moor", "north", "oak", "pond", "quarry", "ridge", "slope", "tarn"),
)

Message = Mapping[str, Any]


# ---------------------------------------------------------------------------------------------- the world


class Fact(NamedTuple):
    """A fact of a page: the value is in one line of it, beside the key."""

    page: int
    key: str
    value: str

    @property
    def line(self) -> str:
        """The line of the page."""
        return f"Site {self.key} has the depth code {self.value}."


@cache
def facts() -> Sequence[Fact]:
    """Return all facts, spread over the pages."""
    draw = random.Random(48)
    return [Fact(number % PAGES + 1, f"S-{number:03d}", f"{draw.getrandbits(40):010x}") for number in range(FACTS)]


@cache
def page(number: int) -> str:
    """Return a page: a title, then lines of words with the facts among them."""
    draw = random.Random(number)
    own = [fact.line for fact in facts() if fact.page == number]
    lines = [f"Page {number} of the survey."]
    while sum(map(len, lines)) + len(lines) < LENGTH:
        lines.append(" ".join(draw.choice(_WORDS) for _ in range(14)) + ".")
    for place, line in enumerate(own):
        lines.insert((place + 1) * len(lines) // (len(own) + 2), line)
    return "\n".join(lines)[:LENGTH]


def tools() -> list[Callable[..., str]]:
    """Return the tools of one run."""
    pages = iter(range(1, PAGES + 1))

    def next_page() -> str:
        """Read the next page of the survey. Each page can be read once."""
        return page(next(pages))

    def look_up(word: str) -> str:
        """Look a word up in the glossary."""
        return f"{word}: " + " ".join(random.Random(word).choices(_WORDS, k=30)) + "."

    return [next_page, look_up]


# ---------------------------------------------------------------------------------------------- the model


class Sent(NamedTuple):
    """A recorded request.

    Attributes:
        size: Its characters.
        cached: How many of them an earlier request began with.
        breaks: Whether it does not begin with the request before; of a summary False.
    """

    size: int
    cached: int
    breaks: bool


@dataclass
class Model:
    """The scripted model of one run, and what it was sent.

    Attributes:
        sent: The requests up to the last one of the 120.
        summaries: How many of them asked for a summary.
        whole: How many pages the model was shown whole.
        shown: How many facts were in a later request.
        read: How many a call brought.
    """

    sent: list[Sent] = field(default_factory=list)
    summaries: int = 0
    whole: int = 0
    shown: int = 0
    read: int = 0
    _step: int = 0
    _begun: dict[bytes, int] = field(default_factory=dict)
    _before: bytes = b""
    _left: list[Fact] = field(default_factory=lambda: list(facts()))
    _asked: Fact | None = None

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a request."""
        messages: Sequence[Message] = body["messages"]
        is_summary = asks_for_summary(body)
        if self._step < PAGES + QUESTIONS:
            self._record(body, is_summary)
        if is_summary:
            self.summaries += self._step < PAGES + QUESTIONS
            return {"content": summary(messages)}
        self._step += 1
        self.whole += 1 < self._step <= PAGES + 1 and page(self._step - 1) in text_of(messages[-1])
        if self._step <= PAGES:
            return self._call("next_page", {})
        if self._step <= PAGES + QUESTIONS:
            return self._call("look_up", {"word": f"{_WORDS[self._step % len(_WORDS)]}-{self._step}"})
        return self._look_for_facts(body)

    def _record(self, body: Mapping[str, Any], is_summary: bool) -> None:
        pieces = [json.dumps(one, sort_keys=True, separators=(",", ":")) for one in (body.get("tools") or [], *body["messages"])]
        begun, size, cached, state = list[bytes](), 0, 0, blake2b()
        for piece in pieces:
            state.update(piece.encode())
            begun.append(state.digest())
            size += len(piece)
            cached = size if begun[-1] in self._begun else cached
            self._begun.setdefault(begun[-1], size)
        self.sent.append(Sent(size, cached, not is_summary and self._before != b"" and self._before not in begun))
        if not is_summary:
            self._before = begun[-1]

    def _look_for_facts(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Look for the next fact; facts that are in the request need no call."""
        text, asked = json.dumps(body["messages"]), self._asked
        if asked is not None:
            self.read += asked.value in json.dumps(body["messages"][-1])
            self._asked = None
        while self._left:
            fact = self._left.pop(0)
            if fact.value in text:
                self.shown += 1
            elif (call := reading_call(body, fact)) is not None:
                self._asked = fact
                return self._call(*call)
        return {"content": "Done."}

    def _call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        call_id = f"call_{self._step}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"content": None, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def asks_for_summary(body: Mapping[str, Any]) -> bool:
    """Whether a request asks for a summary: it declares no tools, or ends in an instruction that is not the task."""
    last = body["messages"][-1]
    text = text_of(last)
    return not body.get("tools") or (last["role"] == "user" and TASK not in text and "summary of the conversation" not in text.lower())


def text_of(message: Message) -> str:
    """Return the text of a message."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(block.get("text", "")) for block in content)


def summary(messages: Sequence[Message]) -> str:
    """Return a summary with the facts that are in the messages, the latest ones, as many as fit."""
    text = "\n".join(map(text_of, messages))
    seen = [fact.line for fact in facts() if fact.value in text]
    head = f"The survey is being read page by page; {len(seen)} sites were seen. The latest:"
    return "\n".join([head, *seen[-((SUMMARY - len(head)) // (len(seen[0]) + 1)) :]] if seen else [head])


def reading_call(body: Mapping[str, Any], fact: Fact) -> tuple[str, dict[str, Any]] | None:
    """Return the call by which a model would look for a fact that the request does not show; None where no declared tool reads anything."""
    names = {tool["function"]["name"] for tool in body.get("tools") or ()}
    if "read_result" in names:
        line = next((text for one in body["messages"] if f"Page {fact.page} of" in (text := text_of(one)) and "read_result" in text), "")
        handle = re.search(r"\br\d+-[0-9a-f]{6}\b", line)
        return ("read_result", {"handle": handle[0] if handle else f"r{fact.page}", "find": fact.key})
    if "grep" in names:
        return ("grep", {"pattern": fact.key, "path": "/", "output_mode": "content"})
    return None


@contextmanager
def served(model: Model) -> Iterator[str]:
    """Serve a model over chat completions on loopback; gives the base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer a request."""
            asked = self.rfile.read(int(self.headers["content-length"]))
            message = {"role": "assistant", **model.answer(json.loads(asked))}
            prompt, reply = len(asked) // CHARACTERS, len(json.dumps(message)) // CHARACTERS
            finish = "tool_calls" if message.get("tool_calls") else "stop"
            whole = {
                "id": f"chatcmpl-{random.getrandbits(64):x}",
                "object": "chat.completion",
                "created": 1,
                "model": "scripted",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply},
            }
            out = json.dumps(whole).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


# ---------------------------------------------------------------------------------------------- here and peers


def partner(url: str) -> Any:
    """Return the chat model of LangChain's partner package."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="scripted", api_key="x", base_url=url, max_retries=0, profile={"max_input_tokens": WINDOW})  # type: ignore[arg-type]


def agent(middleware: Callable[[Any], Sequence[Any]] = lambda model: ()) -> Callable[[str], None]:
    """Return a run of LangChain's `create_agent` with middleware."""

    def run(url: str) -> None:
        from langchain.agents import create_agent

        model = partner(url)
        made: Any = create_agent(model, tools(), middleware=middleware(model))
        made.invoke({"messages": [{"role": "user", "content": TASK}]}, {"recursion_limit": 10_000})

    return run


def summarizing(**settings: Any) -> Callable[[Any], Sequence[Any]]:
    """Return LangChain's SummarizationMiddleware with settings."""

    def middleware(model: Any) -> Sequence[Any]:
        from langchain.agents.middleware import SummarizationMiddleware

        return [SummarizationMiddleware(model, **settings)]

    return middleware


def clearing(**settings: Any) -> Callable[[Any], Sequence[Any]]:
    """Return LangChain's ContextEditingMiddleware with settings of its edit."""

    def middleware(model: Any) -> Sequence[Any]:
        from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

        return [ContextEditingMiddleware(edits=[ClearToolUsesEdit(**settings)])]

    return middleware


def deep_agent(evicts: int | None = None, **summaries: Any) -> Callable[[str], None]:
    """Return a run of deepagents, as it comes or with settings.

    Args:
        evicts: The tokens above which a result is moved into a file; None for the default.
        **summaries: Settings of its summaries, if any is not the default.
    """

    def run(url: str) -> None:
        from deepagents import FilesystemMiddleware, create_deep_agent
        from deepagents.backends import StateBackend
        from deepagents.middleware.summarization import SummarizationMiddleware

        model, backend = partner(url), StateBackend()
        own: list[Any] = [] if evicts is None else [FilesystemMiddleware(backend=backend, tool_token_limit_before_evict=evicts)]
        own += [SummarizationMiddleware(model, backend=backend, **summaries)] if summaries else []
        made: Any = create_deep_agent(model, tools(), middleware=own, backend=backend)
        made.invoke({"messages": [{"role": "user", "content": TASK}]}, {"recursion_limit": 10_000})

    return run


def ours(**compaction: Any) -> Callable[[str], None]:
    """Return a run of this package, with compaction where settings of it are given."""

    def run(url: str) -> None:
        from langchain_autotools import ChatOpenAI, Compaction

        compact = {"compact": Compaction(**compaction), "context_window": WINDOW} if compaction else {}
        model: Any = ChatOpenAI
        model(model="scripted", api_key="x", base_url=url, tools=tools(), max_turns=1_000, **compact).invoke(TASK)

    return run


_LATE: dict[str, Any] = {"trigger": ("fraction", 0.95), "keep": ("messages", 2), "trim_tokens_to_summarize": None}
"""The settings of LangChain's and deepagents' summaries that broke the prefix least among those tried, with no request above the window."""

ROWS: dict[str, tuple[str, Callable[[str], None]]] = {
    "`create_agent`": ("langchain", agent()),
    "`SummarizationMiddleware`, 4,000 tokens, keep 20 messages (its example)": (
        "langchain",
        agent(summarizing(trigger=("tokens", 4_000), keep=("messages", 20))),
    ),
    "`SummarizationMiddleware`, 0.95, keep 2 messages, untrimmed": ("langchain", agent(summarizing(**_LATE))),
    "`ContextEditingMiddleware`": ("langchain", agent(clearing())),
    "`ContextEditingMiddleware`, `clear_at_least=25000`": ("langchain", agent(clearing(clear_at_least=25_000))),
    "`ContextEditingMiddleware`, `trigger=32000`, `keep=4`": ("langchain", agent(clearing(trigger=WINDOW * 4 // 5, keep=4))),
    "deepagents": ("deepagents", deep_agent()),
    "deepagents, 0.95, keep 2 messages, untrimmed": ("deepagents", deep_agent(**_LATE)),
    "deepagents, results above 1,000 tokens in files": ("deepagents", deep_agent(evicts=1_000)),
    "autotools": ("langchain_autotools", ours()),
    "autotools, `compact=True`": ("langchain_autotools", ours(at=0.8)),
    "autotools, `Compaction(at=0.95, keep=1)`": ("langchain_autotools", ours(at=0.95, keep=1)),
    "autotools, `Compaction(at=0.25)`": ("langchain_autotools", ours(at=0.25)),
}


def measured(run: Callable[[str], None]) -> Model:
    """Return the model of a run, which has recorded it."""
    model = Model()
    with served(model) as url:
        run(url)
    return model


def row(name: str, model: Model) -> str:
    """Return the row of a run."""
    sent = model.sent
    figures = (
        max(one.size for one in sent),
        sum(one.breaks for one in sent),
        sum(one.size - one.cached for one in sent),
        model.whole,
        model.shown + model.read,
        len(sent),
    )
    cells = [f"{figure:,}" for figure in figures]
    cells[4] += f" ({model.shown:,} + {model.read:,})"
    cells[5] += f" ({model.summaries:,} for summaries)" if model.summaries else ""
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--only", nargs="*", default=[], help="rows whose name has one of these words")
    words = parser.parse_args().only
    columns = ("", "largest request", "breaks", "outside of the prefix", "pages seen", "facts (in the request + by a call)", "requests")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for name, (package, run) in ROWS.items():
        if importlib.util.find_spec(package) is not None and (not words or any(word in name for word in words)):
            print(row(name, measured(run)), flush=True)


if __name__ == "__main__":
    main()
