"""The README and the examples do what they say: every Python block and every example program runs, against a server on loopback."""

import ast
import importlib
import json
import re
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_autotools import new_messages
from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.openai_wire import Asked, reply_to
from tests.support.pages import end_durable, has_extras, skip_without_extra
from tests.support.script import Call, Turn

REPOSITORY = Path(__file__).resolve().parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
INDEX = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
ELSEWHERE = ("local_weights.py", "chat_app.py")  # tests/providers/local, tests/browser
EXAMPLES = sorted(path for path in (REPOSITORY / "examples").glob("*.py") if path.name not in ELSEWHERE)
CITIES = ("Paris", "Rome", "Oslo")


def page_name(page: Path) -> str:
    """Where a page lies in the repository."""
    return page.relative_to(REPOSITORY).as_posix()


def python_blocks(text: str) -> list[str]:
    """The Python code blocks of a Markdown page."""
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def decide(request: Mapping[str, Any]) -> Turn:
    """What a sensible model says: it calls the tool for each city of the last question, then tells what it was told."""
    messages = request["messages"]
    question = max(position for position, message in enumerate(messages) if message["role"] == "user")
    results = [message for message in messages[question:] if message["role"] == "tool"]
    cities = [city for city in CITIES if city in str(messages[question]["content"])]
    tools = [tool["function"] for tool in request.get("tools", ())]
    if any("page" in tool["parameters"]["properties"] for tool in tools):
        return _read_book([str(message["content"]) for message in messages], [str(result["content"]) for result in results])
    of_cities = next((tool["name"] for tool in tools if "city" in tool["parameters"]["properties"]), None)
    if results:
        told = [f"{city} {result['content']}" for city, result in zip(cities or ["Result:"], results, strict=False)]
        if "response_format" in request:
            return Turn(text=json.dumps({"city": cities[0], "temperature": results[-1]["content"]}))
        return Turn(text=", ".join(told) + ".")
    mail = {"to": "Anna", "text": "Dinner is at eight."}
    mails = [Call(tool["name"], mail) for tool in tools if "to" in tool["parameters"]["properties"] and "mail" in str(messages[question])]
    asked = next((tool["name"] for tool in tools if "question" in tool["parameters"]["properties"]), None)
    if asked:
        return Turn(calls=[Call(asked, {"question": str(messages[question]["content"])})])
    if of_cities:
        return Turn(text="Let me look.", calls=[*(Call(of_cities, {"city": city}) for city in cities), *mails])
    return Turn(calls=mails or [Call(tools[0]["name"], mail)]) if tools else Turn(text="I do not know.")


def _read_book(texts: list[str], results: list[str]) -> Turn:
    """The next step of a model that reads twelve pages, and looks at the third one again."""
    usage = (sum(map(len, texts)) // 4, 20)
    if len(results) < 12:
        return Turn(calls=[Call("read_page", {"page": len(results) + 1})], usage=usage)
    if len(results) == 12:
        handle = results[2].rpartition('handle="')[2].partition('"')[0]
        return Turn(calls=[Call("read_result", {"handle": handle, "find": "fact"})], usage=usage)
    return Turn(text=f"The fact of page 3 is {results[-1].partition(' is ')[2].partition('.')[0]}.", usage=usage)


def answer(exchange: Exchange) -> HttpReply:
    """The server's reply."""
    return reply_to(Asked.by(exchange.number, exchange.json), decide(exchange.json))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """A server that the environment names as the place to ask."""
    with LoopbackServer(answer) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{running.address}/v1")
        yield running


def test_the_python_of_the_readme_runs(server: LoopbackServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's blocks run one after another, and the first prints what it says."""
    monkeypatch.setattr("builtins.input", lambda prompt: "y")
    names: dict[str, Any] = {"__name__": "readme"}
    blocks = python_blocks(README)
    exec(compile(blocks[0], "README.md", "exec"), names)
    assert capsys.readouterr().out == "Let me look.\nParis 21 °C, Rome 21 °C."
    assert [message.type for message in names["history"]] == ["human", "ai", "tool", "tool", "ai"]
    for block in blocks[1:]:
        exec(compile(block, "README.md", "exec"), names)
    assert "Oslo 21 °C." in capsys.readouterr().out
    assert server.exchanges


def test_the_readme_says_why_before_how() -> None:
    """The program, its picture, the reasons, the commands, in this order; what is more is on the pages behind it."""
    places = [
        README.index(sign) for sign in ("```python\n", "![A run of two turns", "\n## Why", "\n## Try it", "\n## Coming from", "\n## More")
    ]
    assert places == sorted(places)
    assert len(README.splitlines()) <= 210


def test_the_picture_of_a_run_is_that_of_the_readmes_run(server: LoopbackServer) -> None:
    """Each row is a chunk: its text, and the message that it brings."""
    names: dict[str, Any] = {"__name__": "readme"}
    before, _, _ = python_blocks(README)[0].partition("for chunk in")
    exec(compile(before, "README.md", "exec"), names)
    drawn: dict[float, dict[str, str]] = {}
    for element in ElementTree.parse(REPOSITORY / "docs" / "images" / "run.svg").iter("{http://www.w3.org/2000/svg}text"):
        drawn.setdefault(float(element.attrib["y"]), {})[element.attrib["class"].split()[0]] = element.text or ""
    rows = [(row["text"], row.get("message")) for _, row in sorted(drawn.items()) if "text" in row]
    assert rows == [_row(chunk) for chunk in names["model"].stream(names["history"])]


def _row(chunk: AIMessageChunk) -> tuple[str, str | None]:
    labels = {"tool": "Tool: {0.text}", "ai": "AI: the answer"}
    calls = [f"AI: {len(one.tool_calls)} tool calls" for one in new_messages(chunk) if isinstance(one, AIMessage) and one.tool_calls]
    messages = calls or [labels[one.type].format(one) for one in new_messages(chunk)]
    return json.dumps(chunk.text, ensure_ascii=False), messages[0] if messages else None


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_run(
    path: Path, server: LoopbackServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every program under examples/ runs to its end and says something sensible."""
    skip_without_extra(path.read_text(encoding="utf-8"))
    monkeypatch.setattr("builtins.input", lambda prompt: "y")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    end_durable(path.read_text(encoding="utf-8"))
    said = capsys.readouterr().out
    assert "21 °C" in said or "Sent to Anna." in said


def test_the_index_names_the_examples_which_are_short() -> None:
    """All that run here are named there, and have less than 40 lines of code; so is the chat page."""
    (listed,) = re.findall(r"^Whole programs.*?\n\n", INDEX, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`(\w+\.py)`", listed)) == {*(path.name for path in EXAMPLES), "chat_app.py"}
    for path in EXAMPLES:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(lines) < 40, path.name


def navigation() -> dict[str, list[str]]:
    """The pages of the site by their section, as mkdocs.yml lists them."""
    listed = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    sections = re.split(r"^  - ", listed, flags=re.MULTILINE)[1:]
    return {section.partition(":")[0]: re.findall(r"(\S+\.md)$", section, re.MULTILINE) for section in sections}


def test_the_index_lists_the_pages_of_the_site() -> None:
    """Each page for users is linked from it; each page for contributors from its last section, and none of these before."""
    pages = navigation()
    assert {"Tutorial", "How-tos", "Topics", "Models", "For contributors"} <= set(pages)
    users, _, contributors = (set(re.findall(r"\]\(([\w./-]+\.md)", part)) for part in INDEX.partition("\n## For contributors\n"))
    assert contributors == set(pages["For contributors"])
    listed = {page for section in ("Home", "Tutorial", "How-tos", "Topics", "Models") for page in pages[section]} - {"index.md"}
    assert users == listed | {"reference/index.md"}


def test_each_way_is_three_pages() -> None:
    """Of a row of the page of ways, each cell but the first has one link."""
    lines = (REPOSITORY / "docs" / "ways.md").read_text(encoding="utf-8").splitlines()
    ways = [line.strip("|").split("|") for line in lines if line.startswith("| ")][1:]
    assert len(ways) > 20
    assert [row[0] for row in ways if [cell.count("](") for cell in row] != [0, 1, 1, 1]] == []
    assert len({cell.strip() for cell, *_ in ways}) == len(ways)


def test_the_pages_name_only_what_exists() -> None:
    """The Python of every page parses, and every name that it imports from this package exists."""
    missing: list[str] = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for block in python_blocks(text) if has_extras(text) else ():
            for node in ast.walk(ast.parse(block, path.name)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langchain_autotools"):
                    module = importlib.import_module(node.module or "")
                    missing += [f"{path.name}: {node.module}.{alias.name}" for alias in node.names if not hasattr(module, alias.name)]
    assert missing == []


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link of a page leads to a file of the repository."""
    links = [(path, link) for path in PAGES for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", path.read_text(encoding="utf-8"))]
    assert links
    assert [(page_name(path), link) for path, link in links if not (path.parent / link).exists()] == []


def test_the_readme_and_ci_test_alike() -> None:
    """CI runs the README's test command, with coverage added."""
    command = "-m pytest -n 2"
    assert command in README
    assert re.search(rf"^\S+ {command} .*--cov", (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
