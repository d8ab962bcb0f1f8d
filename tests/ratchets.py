"""Counts what may only become less of the package's dispersion: `python -m tests.ratchets --write` lowers what is stored.

`tests/ratchets.csv` has the figures, `tests/test_ratchets.py` compares them with the code. Code lines and modules are not among them.
"""

import argparse
import ast
import csv
import io
import sys
import tokenize
from collections.abc import Callable
from functools import cache
from pathlib import Path

from langchain_autotools import ChatOpenAI
from tests.costs import ATTEMPTS, counted
from tests.frames import tool_call
from tests.support.http_server import Exchange
from tests.support.script import Call, Turn
from tests.support.trees import nodes_of
from tests.test_costs import OpenAIInOnePiece
from tests.test_house import MODULES, RULES, folder_of, imports_of, module_of, name_of

TABLE = Path(__file__).with_suffix(".csv")
EVENTS = ("TextDelta", "CallStarted", "CallProgress", "ModelChanged", "RunEnded")
SETTINGS = ("max_turns", "max_concurrency", "requires_approval", "claim", "deadline")
DEFS = "defs of a tool turn"
"""Stored for Python 3.11, where a comprehension is a function, which is not counted."""


def reply(exchange: Exchange) -> Turn:
    """One tool call, and then the answer."""
    answered = any(message["role"] == "tool" for message in exchange.json["messages"])
    return Turn("It is warm.") if answered else Turn(calls=[Call("look", {"place": "Rome"})])


def look(place: str) -> str:
    """Look at a place."""
    return place


@cache
def tool_turn() -> list[set[str]]:
    """The functions of the package that one streamed answer with one tool call enters, model made and asked; in each of several looks."""
    with OpenAIInOnePiece(reply) as server:

        def run() -> None:
            model = ChatOpenAI(model="m", api_key="key", base_url=server.url, tools=[look])
            assert "".join(chunk.text for chunk in model.stream("Hello")) == "It is warm."

        run()  # imports what it needs, and makes what is made once
        return [set(counted(run)) for _ in range(ATTEMPTS)]


def files_entered() -> int:
    """The modules of the package in which a function is entered."""
    return min(len({name.partition(":")[0] for name in entered}) for entered in tool_turn())


def defs_entered() -> int:
    """The `def`s of the package that are entered: no lambdas, comprehensions and generator expressions."""
    return min(sum(not name.endswith(">") for name in entered) for entered in tool_turn())


def frames_above_the_tool() -> int:
    """The functions of the package between the caller and a tool that runs."""
    return len(tool_call())


def names_across_borders() -> int:
    """The distinct pairs of a module and a name that another module imports from it, wherever the import is.

    A module that is imported as a whole counts as one name. The root is left out as an importer: it names what is public.
    """
    known = {name_of(path): path for path in MODULES}
    names = {
        (module, "" if full.endswith(f".{module}") else full.rpartition(".")[2])
        for name, path in known.items()
        if name != "__init__"
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom)
        for full in imports_of(node, folder_of(path))
        if (module := module_of(full, known)) and (module != name)
    }
    return len(names)


def files_with(word: str) -> int:
    """The modules of the package in whose code a name is."""
    return sum(word in identifiers(path) for path in MODULES if word in path.read_text(encoding="utf-8"))


@cache
def identifiers(path: Path) -> set[str]:
    """The names in a module's code: none in texts and comments."""
    source = path.read_text(encoding="utf-8")
    return {token.string for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.NAME}


MEASURED: dict[str, Callable[[], int]] = {
    "files of a tool turn": files_entered,
    DEFS: defs_entered,
    "frames above the tool": frames_above_the_tool,
    "names across borders": names_across_borders,
    **{f"files with {word}": lambda word=word: files_with(word) for word in (*EVENTS, *SETTINGS)},  # type: ignore[misc]
    **{f"exceptions: {rule}": lambda find=find: len(find()) for rule, (find, *_) in RULES.items()},  # type: ignore[misc]
}


def stored() -> dict[str, int]:
    """The stored figures."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["what"]: int(row["at most"]) for row in csv.DictReader(file)}


def write() -> None:
    """Store what is less now than before."""
    if sys.version_info[:2] != (3, 11):
        raise SystemExit("the figures are those of Python 3.11")
    before = stored() if TABLE.exists() else {}
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["what", "at most"])
        for what, measure in MEASURED.items():
            table.writerow([what, min(measure(), before.get(what, sys.maxsize))])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.ratchets", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--write", action="store_true", help="lower the stored figures to those of now")
    if parser.parse_args().write:
        write()
    else:
        print(*(f"{measure():6}  {what}" for what, measure in MEASURED.items()), sep="\n")
