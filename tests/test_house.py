"""The rules of the house: who may import whom, what is loaded when, how large a piece may be, where names may be."""

import ast
import csv
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.trees import nodes_of, tree_of

pytestmark = pytest.mark.house

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "langchain_autotools"
MODULES = sorted(PACKAGE.rglob("*.py"))
PYTHON_FILES = [*MODULES, *(path for folder in ("tests", "examples", "benchmarks") for path in sorted((REPOSITORY / folder).rglob("*.py")))]

# A room, the trip through the house from its end to its beginning. A module imports from its own room and from those before it.
ROOMS = (
    ("addresses", "errors", "compat", "strict_json", "_version"),
    ("pickling",),
    ("chunks", "messages", "deadline"),
    ("retry", "event_bus"),
    ("executor", "history", "tool_calls", "pricing"),
    ("event_types",),
    ("turn",),
    ("run",),
    ("mixin",),
    ("testing", "providers", "mcp_client"),
    ("agent", "file_handlers"),
    ("event_reader",),
    ("encoders",),
    ("claim_database", "durable", "showing"),
    ("cli",),
    ("__main__",),
)
RANKS = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
# The same inside `providers`: what all vendors share, the vendors, and what knows them by name.
PROVIDER_ROOMS = (
    ("_encode",),
    ("_transport",),
    ("_base",),
    ("anthropic", "google", "ollama", "openai"),
    ("known",),
    ("langchain_classes", "local", "presets"),
    ("memory_tools", "registry", "results"),
)
PROVIDER_RANKS = {room: rank for rank, rooms in enumerate(PROVIDER_ROOMS) for room in rooms}
LEAVES = ("claim_database", "encoders", "durable", "showing", "cli", "file_handlers", "providers.local")
"""Runs shown, stored and served: nothing else needs them, so that they can be another distribution."""
SMALL = 150
"""A module of fewer lines is small, and joins another, or has a reason."""
EXCEPTIONS = REPOSITORY / "tests" / "exceptions.csv"
TO_DO = ("not yet joined", "not yet said plainly", "not yet renamed")
"""Reasons that are none: what is listed with them breaks a rule and is to be mended."""
PURE = (
    "strict_json",
    "chunks",
    "messages",
    "history",
    "tool_calls",
    "run.loop",
    "turn.tools",
)
IMPURE_MODULES = {"asyncio", "time", "random", "datetime", "secrets", "threading", "concurrent", "socket", "queue", "select", "subprocess"}
ASYNC_NODES = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
SDKS = {"openai", "anthropic", "google", "ollama", "xllamacpp", "huggingface_hub", "httpx", "httpx2", "cohere", "mistralai", "groq"}
INTEGRATIONS = {
    "dbos": ("durable",),
    "sqlalchemy": ("claim_database", "durable"),
    "ag_ui": ("encoders",),
    "genai_prices": ("pricing",),
    "mcp": ("mcp_client",),
}
LOADS_ITS_SDK = "error_types"  # a vendor's error classes: no module imports them but late
VENDORS = "openai azure anthropic google vertex bedrock ollama cohere mistral mistralai groq openrouter fireworks deepseek xai"
SERVERS = "zhipu dashscope moonshot llamacpp vllm sglang nebius cerebras perplexity minimax"
MODELS = "claude gemini grok gpt qwen kimi glm llama"
VENDOR_WORDS = {*VENDORS.split(), *SERVERS.split(), *MODELS.split()}
FOREIGN_NAMES = re.compile(r"convert_to_openai_(?:tool|function)|_parse_google_docstring")  # langchain_core's, whatever the vendor
NAME_TABLES = {"__init__", "cli"}
PLACES = re.compile(r"py[p]i\.org|python[h]osted|/[w]ork/(?:main|shared|venv|plan)|/[r]oot/", re.IGNORECASE)


def name_of(path: Path) -> str:
    """The dotted name of a module inside the package, without the package's own name."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def top_of(path: Path) -> str:
    """The first part of a module's dotted name: the name that has a rank."""
    return name_of(path).split(".")[0]


def folder_of(path: Path) -> str:
    """The dotted name of the package that a module lies in."""
    return ".".join(("langchain_autotools", *path.relative_to(PACKAGE).parts[:-1]))


def each_file(paths: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[str], None]]:
    """Makes one test of each room: what is checked of a file is checked of all files in it and below."""
    folders: dict[str, list[Path]] = {}
    for path in paths:
        folders.setdefault("/".join(path.parent.relative_to(REPOSITORY).parts[:2]) or ".", []).append(path)

    def decorate(check: Callable[[Path], None]) -> Callable[[str], None]:
        @pytest.mark.parametrize("folder", folders)
        def test(folder: str) -> None:
            for path in folders[folder]:
                try:
                    check(path)
                except BaseException as error:
                    error.add_note(f"in {path.relative_to(REPOSITORY)}")
                    raise

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def imports_of(node: ast.AST, package: str) -> Iterator[str]:
    """The dotted names that `node` imports; relative imports are made absolute from `package`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        yield from (f"{module}.{alias.name}" for alias in node.names)


@cache
def all_imports(path: Path) -> list[str]:
    """Every import of a module, wherever it is, type-only ones included."""
    return [name for folder in [folder_of(path)] for node in nodes_of(path) for name in imports_of(node, folder)]


def eager_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: no function bodies, nothing under TYPE_CHECKING."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


@cache
def functions_of(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file, methods and inner ones included."""
    return [node for node in nodes_of(path) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def in_fresh_process(code: str) -> str:
    """What `code` prints in a new interpreter at the repository root."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def is_below(other: str, own: str, ranks: Mapping[str, int]) -> bool:
    """Whether `own` may import from `other`: from its own room, or from one below it."""
    assert own in ranks, f"`{own}` has no place in the house: give it one"
    return other == own or ranks[other] < ranks[own]


@each_file(MODULES)
def test_imports_go_down_only(path: Path) -> None:
    """A module imports from its own room and from rooms below it only."""
    own = name_of(path).split(".")
    if own[0] == "__init__":
        return  # the root names everything, and loads it lazily
    for name in all_imports(path):
        root, *other = name.split(".")
        if root != "langchain_autotools":
            continue
        assert other[0] in RANKS, f"{name_of(path)} imports {name}: import from the module that defines it"
        assert is_below(other[0], own[0], RANKS), f"{name_of(path)} imports {name}, which lies above it"
        if own[0] == other[0] == "providers" and len(own) > 1:
            assert is_below(other[1], own[1], PROVIDER_RANKS), f"{name_of(path)} imports {name}, which lies above it"


def test_no_imports_go_in_a_circle() -> None:
    """Inside the rooms too no module imports, by whatever way, what imports it."""
    known = {name_of(path): path for path in MODULES}
    graph = {name: {module for full in all_imports(path) if (module := module_of(full, known))} - {name} for name, path in known.items()}
    TopologicalSorter({name: used for name, used in graph.items() if name != "__init__"}).prepare()


def module_of(full: str, known: Collection[str]) -> str | None:
    """The module of the package that an imported name lies in; None for a foreign name."""
    root, _, name = full.partition(".")
    while root == "langchain_autotools" and name and name not in known:
        name = name.rpartition(".")[0]
    return name if root == "langchain_autotools" and name else None


def test_the_library_of_an_integration_stays_in_its_room() -> None:
    """What an extra installs for one room is imported there only: the rest of the house does not know it."""
    for path in MODULES:
        foreign = {name.split(".")[0] for name in all_imports(path)} & INTEGRATIONS.keys()
        assert all(top_of(path) in INTEGRATIONS[name] for name in foreign), f"{name_of(path)} imports {foreign}"


def is_pure(name: str) -> bool:
    """Whether a module is one of those that know no async, no clock and no chance, or lies in such a room."""
    return any(name == pure or name.startswith(f"{pure}.") for pure in PURE)


@each_file(path for path in MODULES if is_pure(name_of(path)))
def test_the_pure_parts_know_no_async_no_clock_and_no_chance(path: Path) -> None:
    """Chunks, messages, history, tool calls, the loop and its limits neither wait, nor sleep, nor look at a clock, nor throw dice."""
    foreign = {name.split(".")[0] for name in all_imports(path)} & IMPURE_MODULES
    assert not foreign, f"{name_of(path)} imports {foreign}"
    for node in ast.walk(tree_of(path)):
        assert not isinstance(node, ASYNC_NODES), f"{name_of(path)}:{node.lineno} is async"
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        assert name not in {"uuid1", "uuid4", "uuid7", "urandom"}, f"{name_of(path)} draws a random {name}"


@each_file(MODULES)
def test_sdks_stay_with_their_vendor_and_load_late(path: Path) -> None:
    """A vendor's SDK is imported under `providers/<vendor>/` only, and never by merely importing the module."""
    used = {name.split(".")[0] for name in all_imports(path)} & SDKS
    in_vendor_folder = len(path.relative_to(PACKAGE).parts) > 2 and top_of(path) == "providers"
    assert not used or in_vendor_folder, f"{name_of(path)} imports {used}"
    eager = [name.split(".") for node in eager_nodes(tree_of(path)) for name in imports_of(node, folder_of(path))]
    loaded = [parts for parts in eager if parts[0] in SDKS or LOADS_ITS_SDK in parts]
    assert not loaded or path.stem == LOADS_ITS_SDK, f"{name_of(path)} loads {loaded} when it is imported"


def test_nothing_imports_langgraph() -> None:
    """langgraph is respected where it is present and imported nowhere."""
    assert not [name_of(path) for path in MODULES if any(name.split(".")[0] == "langgraph" for name in all_imports(path))]


def test_importing_the_package_loads_no_sdk_and_no_chat_model() -> None:
    """`import langchain_autotools` loads neither a vendor's SDK nor langchain_core's chat models."""
    loaded = in_fresh_process("import sys, langchain_autotools; print(*sorted(sys.modules), sep='\\n')").split()
    assert not {*SDKS - {"google"}, "tenacity", *INTEGRATIONS} & set(loaded)
    assert "langchain_core.language_models.chat_models" not in loaded


def test_naming_a_chat_model_loads_no_sdk() -> None:
    """Importing a model class loads no SDK: it comes with the first client."""
    names = ("ChatOpenAI", "ChatAnthropic", "ChatGoogleGenerativeAI", "ChatOllama", "ChatLocal")
    code = "".join(f"from langchain_autotools import {name}; print({name!r}, *sorted(sys.modules))\n" for name in names)
    for name, *loaded in map(str.split, in_fresh_process(f"import sys\n{code}").splitlines()):
        found = {*SDKS - {"google", "httpx2"}, "google.genai", "google.auth", "tenacity", *INTEGRATIONS} & set(loaded)
        assert not found, f"{name} loads {found}"


def test_every_public_name_of_the_root_resolves() -> None:
    """`__all__` is sorted into what exists; an unknown name is an AttributeError."""
    import langchain_autotools

    for name in langchain_autotools.__all__:
        assert getattr(langchain_autotools, name) is not None
        assert name in dir(langchain_autotools)
    with pytest.raises(AttributeError, match="no_such_name"):
        langchain_autotools.no_such_name  # noqa: B018


@each_file(PYTHON_FILES)
def test_files_and_functions_stay_small(path: Path) -> None:
    """A file has at most 800 lines and a function at most 60, its docstring apart."""
    assert path.read_text(encoding="utf-8").count("\n") <= 800
    for function in functions_of(path):
        body = function.body[1:] if ast.get_docstring(function) and len(function.body) > 1 else function.body
        size = (body[-1].end_lineno or 0) - body[0].lineno + 1
        assert size <= 60, f"{path.name}:{function.lineno} {function.name} has {size} lines"


@each_file(MODULES)
def test_a_section_has_a_title_of_its_own(path: Path) -> None:
    """No two sections of a module have one title: what was joined is one text."""
    titles = re.findall(r"(?m)^# -{20,} ?(.*)$", path.read_text(encoding="utf-8"))
    assert len(titles) == len({*titles})


def depth_of(node: ast.AST, depth: int = 0) -> int:
    """How deep branches and loops lie in one another.

    An `elif` is no deeper than its `if`, a `with` opens no branch, an inner function starts anew.
    """
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        is_block = isinstance(child, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match))
        is_elif = isinstance(child, ast.If) and isinstance(node, ast.If) and node.orelse == [child]
        deepest = max(deepest, depth_of(child, depth + (is_block and not is_elif)))
    return deepest


@each_file(MODULES)
def test_nesting_stays_shallow(path: Path) -> None:
    """No function nests branches and loops more than three deep."""
    for function in functions_of(path):
        assert depth_of(function) <= 3, f"{path.name}:{function.lineno} {function.name}"


def words_outside_docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The words of every identifier and string of a file, with their lines. Docstrings may cite the source of a wire fact."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    holders = [node for node in nodes_of(path) if isinstance(node, documented) and ast.get_docstring(node) is not None]
    docstrings = {id(node.body[0].value) for node in holders if isinstance(node.body[0], ast.Expr)}
    for node in nodes_of(path):
        if id(node) in docstrings:
            continue
        for field in ("id", "attr", "name", "arg", "module", "value"):
            text = getattr(node, field, None)
            if isinstance(text, str):
                text = FOREIGN_NAMES.sub("", text)
                spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
                yield from ((getattr(node, "lineno", 0), word.lower()) for word in re.findall(r"[A-Za-z]+", f"{spaced} {text}"))


@each_file(path for path in MODULES if top_of(path) not in {"providers", *NAME_TABLES})
def test_no_provider_is_named_outside_providers(path: Path) -> None:
    """Law 6: no provider or model name is outside `providers/`, save in the name tables of the root and the command line."""
    found = [(line, word) for line, word in words_outside_docstrings(path) if word in VENDOR_WORDS]
    assert not found, f"{name_of(path)} names {found}"


def test_no_place_of_this_or_another_machine_is_named() -> None:
    """No file names a package index, a machine's path or a workplace's tool."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=REPOSITORY, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    texts = {name: (REPOSITORY / name).read_text("utf-8", "replace") for name in listed.stdout.split() if (REPOSITORY / name).is_file()}
    assert not {name: PLACES.findall(text) for name, text in texts.items() if PLACES.search(text)}


def release(version: str) -> tuple[int, ...]:
    """A version as numbers, padded so that 1.7 and 1.7.0 are the same."""
    numbers = [int(part) for part in version.split(".")]
    return (*numbers, *(0,) * (3 - len(numbers)))


def test_the_lowest_releases_are_those_that_are_tested() -> None:
    """`.ci/lowest.txt` pins exactly the lower bounds that pyproject.toml declares, those of the users' extras included."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(line for extra in ("cli", "cost", "durable", "local") for line in extras[extra])]
    bounds = [re.match(r"([\w-]+)>=([\d.]+)", line) for line in declared]
    lines = (REPOSITORY / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert all(bounds)
    assert {name: release(version) for name, version in pinned.items()} == {match[1]: release(match[2]) for match in bounds if match}


def test_the_package_is_typed_and_ships_its_data() -> None:
    """`py.typed` and the chat template of the local model lie in the package."""
    assert (PACKAGE / "py.typed").is_file()
    assert list(PACKAGE.rglob("*.jinja"))


@each_file(sorted((REPOSITORY / "tests").rglob("test_*.py")))
def test_every_test_says_what_it_shows(path: Path) -> None:
    """Every test has a docstring; its first line is a sentence of at most one line."""
    for function in functions_of(path):
        if function.name.startswith("test_"):
            assert (ast.get_docstring(function) or "").strip(), f"{path.name}:{function.lineno} {function.name}"


def test_each_law_has_a_test_named_after_it() -> None:
    """Each of the laws is shown by at least one test that carries its number."""
    names = " ".join(function.name for path in (REPOSITORY / "tests").rglob("test_*.py") for function in functions_of(path))
    assert {int(number) for number in re.findall(r"\btest_law_(\d+)_", names)} == {*range(1, 13)}


DEVELOPMENT = REPOSITORY / "docs" / "development.md"


def listed_rooms() -> set[str]:
    """The folders and modules that the layout of docs/development.md lists, as paths below the package."""
    layout = DEVELOPMENT.read_text(encoding="utf-8").partition("langchain_autotools/\n")[2].partition("```")[0]
    rooms: set[str] = set()
    parents: dict[int, str] = {}
    for line in layout.splitlines():
        depth, name = len(line) - len(line.lstrip()), line.split()[0]
        parents[depth] = parents.get(depth - 2, "") + name
        rooms.add(parents[depth])
    return rooms


def test_the_layout_in_the_docs_is_that_of_the_package() -> None:
    """docs/development.md lists every folder and every module outside the rooms, and nothing that does not exist."""
    folders = {f"{path.parent.relative_to(PACKAGE)}/" for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE}
    loose = {path.name for path in PACKAGE.glob("*.py")} | {f"providers/{path.name}" for path in (PACKAGE / "providers").glob("*.py")}
    hidden = {"__init__.py", "_version.py", "providers/__init__.py"}
    assert listed_rooms() == (folders | loose) - hidden


def test_the_places_named_in_the_docs_exist() -> None:
    """Every place in the table of docs/development.md is a file or a folder of the package."""
    table = DEVELOPMENT.read_text(encoding="utf-8").partition("| Question | Answer |")[2].partition("\n\n")[0]
    places = re.findall(r"`([\w/]+(?:\.py|/))`", table)
    assert len(places) >= 8
    assert [place for place in places if not (PACKAGE / place).exists()] == []


# ------------------------------------------------------------- a stranger's questions: exceptions are in tests/exceptions.csv


def small_modules() -> set[str]:
    """The modules of fewer than 150 lines; what names a package's public names may be as short as it is."""
    return {place_of(path) for path in MODULES if path.stem != "__init__" and path.read_text(encoding="utf-8").count("\n") < SMALL}


def modules_with_and() -> set[str]:
    """The modules whose first sentence has an "and"."""
    return {place_of(path) for path in MODULES if re.search(r"\band\b", first_sentence(path))}


def shared_names() -> set[str]:
    """The names that two functions or classes of one room have, each beside its room."""
    modules: dict[str, int] = defaultdict(int)
    for path in MODULES:
        own = {node.name for node in tree_of(path).body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
        for name in own if room_of(path) else ():
            modules[f"{room_of(path)} {name}"] += 1
    return {name for name, number in modules.items() if number > 1}


def shared_aliases() -> set[str]:
    """The names by which modules of the package import two of its modules as a whole."""
    known = {name_of(path) for path in MODULES}
    meant: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                for alias, full in zip(node.names, imports_of(node, folder_of(path)), strict=True):
                    module = module_of(full, known)
                    if module and full.endswith(f".{module}"):
                        meant[alias.asname or alias.name].add(module)
    return {alias for alias, modules in meant.items() if len(modules) > 1}


RULES: dict[str, tuple[Callable[[], set[str]], str, str]] = {
    "small": (small_modules, TO_DO[0], "has fewer than 150 lines: join it where its question is answered"),
    "and": (modules_with_and, TO_DO[1], "has an `and` in its first sentence: a module answers one question"),
    "name": (shared_names, TO_DO[2], "names two things in one room"),
    "alias": (shared_aliases, TO_DO[2], "means two modules"),
}
"""What is looked for, the reason where there is none yet, and what is said of one more."""


def place_of(path: Path) -> str:
    """A module's path below the package."""
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    """The folder that is a module's room: a vendor's is one of its own. Nothing for a module outside the rooms."""
    folders = path.relative_to(PACKAGE).parts[:-1]
    return "/".join(folders[: 2 if folders[:1] == ("providers",) else 1])


def first_sentence(path: Path) -> str:
    """What a module's docstring says first, without the names of code in it."""
    paragraph = " ".join((ast.get_docstring(tree_of(path)) or "").partition("\n\n")[0].split())
    return re.sub(r"`[^`]*`", "", re.split(r"(?<=[.!?]) ", paragraph)[0])


@cache
def exceptions() -> dict[tuple[str, str], str]:
    """The reasons of the exceptions, by rule and what is excepted."""
    with EXCEPTIONS.open(encoding="utf-8", newline="") as file:
        return {(row["rule"], row["what"]): row["reason"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("rule", RULES)
def test_a_module_answers_one_question_and_a_name_means_one_thing(rule: str) -> None:
    """No small module, no `and` in a first sentence, no shared name or alias but those listed; what is mended is listed no more.

    How many there are may only become less: tests/ratchets.csv.
    """
    find, _, what = RULES[rule]
    there, listed = find(), {one for known, one in exceptions() if known == rule}
    assert there <= listed, f"{sorted(there - listed)} {what}"
    assert listed <= there, f"no longer true of {sorted(listed - there)}: `python -m tests.exceptions --write` takes them off the list"


def test_few_modules_are_small_for_a_reason() -> None:
    """At most 40 modules are small because their question is; each says why."""
    reasons = [reason for (rule, _), reason in exceptions().items() if rule == "small" and reason not in TO_DO]
    assert len(reasons) <= 40
    assert all(exceptions().values())


def test_only_the_providers_have_folders() -> None:
    """A room is flat, so that imports between its modules, which never go in a circle, are all the direction that it needs."""
    folders = {place_of(path.parent) for path in PACKAGE.rglob("__init__.py")}
    assert {folder for folder in folders if "/" in folder and not folder.startswith("providers/")} == set()


def test_leaves_are_leaves() -> None:
    """What shows, stores and serves runs is imported by nothing else but the root's table of names and the command's entry."""

    def is_leaf(name: str) -> bool:
        return any(name == leaf or name.startswith(f"{leaf}.") for leaf in LEAVES)

    for path in MODULES:
        if not is_leaf(name_of(path)) and name_of(path) not in {"__init__", "__main__"}:
            used = [name for name in all_imports(path) if is_leaf(name.removeprefix("langchain_autotools."))]
            assert not used, f"{name_of(path)} imports {used}"
