"""The command line's tools: the built-in ones do no harm, and a user's own are found wherever they are said to be."""

import re
import sys
from pathlib import Path

import pytest
from langchain_core.tools import BaseTool

from langchain_autotools import ConfigurationError
from langchain_autotools.cli.tools import DEMO_TOOLS, SMALL_MODEL_TOOLS, calculate, get_current_time, get_temperature, load_tools

SOURCE = '''
from __future__ import annotations
from langchain_core.tools import tool

@tool
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number

def half(number: int) -> float:
    """Half of a number."""
    return number / 2

both = [double, half]
named = {"halve": half}
number = 3
empty = []
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of tools that nobody has imported."""
    path = tmp_path / "own_tools.py"
    path.write_text(SOURCE)
    yield path
    sys.modules.pop("own_tools", None)


def passed_over(source: str) -> dict[str, str]:
    """What of a source is not offered, and why."""
    return dict(load_tools([source]).passed_over)


@pytest.mark.parametrize("city", ["Paris", "paris", " Paris, France", "PARIS"])
def test_a_known_city_has_its_temperature(city):
    """Spelling and a country after the name make no difference."""
    assert get_temperature.invoke({"city": city}) == "18 °C"


def test_an_unknown_city_has_a_temperature_that_stays():
    """Every name has a plausible temperature, the same each time."""
    first = get_temperature.invoke({"city": "Timbuktu"})
    assert first == get_temperature.invoke({"city": "timbuktu"})
    assert 10 <= int(first.split()[0]) < 25


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("3 * (4 + 5)", "27"),
        ("7 / 2", "3.5"),
        ("-3 + +5", "2"),
        ("7 // 2", "3"),
        ("7 % 4", "3"),
        ("3 × 4 ÷ 2 − 1", "5"),
        ("0.1 + 0.2", "0.3"),
    ],
)
def test_the_calculator_calculates(expression, value):
    """The four operations, remainders, signs and parentheses, also in typeset signs."""
    assert calculate.invoke({"expression": expression}) == value


@pytest.mark.parametrize(
    "expression", ["__import__('os')", "9 ** 9 ** 9", "a + 1", "'a' * 9", "1 if 1 else 2", "1j", "True", "1" * 201, "(1,", "1 / 0"]
)
def test_the_calculator_runs_nothing_and_grows_nothing(expression):
    """Names, calls, powers, texts and whatever else is no arithmetic is an error."""
    with pytest.raises((ValueError, SyntaxError, ZeroDivisionError)):
        calculate.invoke({"expression": expression})


def test_the_built_in_tools_are_plain_tools():
    """Each is a LangChain tool with a description; the small model gets some of them, and the clock tells a date."""
    assert len(SMALL_MODEL_TOOLS) < len(DEMO_TOOLS) and all(tool in DEMO_TOOLS for tool in SMALL_MODEL_TOOLS)
    assert all(isinstance(tool, BaseTool) and tool.description for tool in DEMO_TOOLS)
    assert re.fullmatch(r"\w+, \d{4}-\d\d-\d\d \d\d:\d\d .+", get_current_time.invoke({}))


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [("", ["double"]), (":double", ["double"]), (":half", ["half"]), (":both", ["double", "half"]), (":named", ["halve"])],
)
def test_tools_come_from_a_file(file, attribute, expected):
    """A file alone gives its LangChain tools; an attribute gives a tool, a function, a list or a mapping of names."""
    assert load_tools([f"{file}{attribute}"]).names == expected


def test_a_file_says_by_the_name_tools_what_it_offers(file):
    """Where a file has `tools`, that is what it offers."""
    file.write_text(SOURCE + "\ntools = [half]\n")
    assert load_tools([str(file)]).names == ["half"]


def test_what_a_file_does_not_offer_is_told_with_the_reason(file):
    """Its plain functions; where it has `tools`, the tools that are not in it; of what is named nothing is passed over."""
    file.write_text(SOURCE + "\ndef _inner() -> int:\n    return 1\n")
    assert passed_over(str(file)) == {"half": f"a plain function: name it with -T {file}:half, or decorate it with @tool"}
    assert passed_over(f"{file}:double") == {}
    file.write_text(SOURCE + "\ntools = [half]\n")
    assert passed_over(str(file)) == {"double": "not in tools"}


def test_tools_come_from_a_module_of_the_current_folder(file, monkeypatch):
    """`module:attribute` finds modules beside the user, as `python -m` does."""
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    assert load_tools(["own_tools:both"]).names == ["double", "half"]


def test_a_file_may_import_its_neighbours(file, tmp_path, monkeypatch):
    """As a program does that Python is given; from whatever folder the command is called."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "neighbour_of_tools.py").write_text("UNIT = '°C'", encoding="utf-8")
    own = tmp_path / "importing_tools.py"
    own.write_text("from neighbour_of_tools import UNIT\n\ndef unit() -> str:\n    'The unit.'\n    return UNIT\n", encoding="utf-8")
    (unit,) = load_tools([f"{own}:unit"]).tools
    assert unit() == "°C"


def test_several_sources_add_up(file):
    """`--tools` may be repeated."""
    assert load_tools([f"{file}:half", f"{file}:double"]).names == ["half", "double"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("own_tools", "expected module:attribute"),
        ("{file}:nothing", "there is no nothing in it"),
        ("{file}:number", "a int is neither a tool"),
        ("{file}:empty", "no tools in it"),
        ("/no/missing.py", "there is no file /no/missing.py"),
        ("no_such_module:tools", "cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_source_that_cannot_work_is_named(file, source, message):
    """Each mistake is one line that names the source."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_tools([source.format(file=file)])
    assert "\n" not in str(caught.value)


def test_a_file_that_fails_is_an_error_of_one_line(file):
    """An exception in the user's file is told with its line, without a traceback."""
    file.write_text("import json\n\njson.loads('{')\n")
    with pytest.raises(ConfigurationError, match=r"own_tools\.py cannot be loaded: line 3: JSONDecodeError: ") as caught:
        load_tools([str(file)])
    assert "\n" not in str(caught.value)


def test_a_file_that_python_cannot_read_is_told_with_its_line(file):
    """A syntax error says where it is."""
    file.write_text("tools = []\ndef broken(:\n")
    with pytest.raises(ConfigurationError, match=r"own_tools\.py cannot be loaded: line 2: SyntaxError: "):
        load_tools([str(file)])


def test_a_file_of_plain_functions_says_how_to_name_one(file):
    """Which functions of a file a model may call is for its author to say; the error shows the ways."""
    file.write_text("from json import loads\n\ndef half(number: int) -> float:\n    'Half.'\n    return number / 2\n")
    with pytest.raises(
        ConfigurationError, match=r"no tools in it; name its functions \(.*own_tools\.py:half\), list them \(tools = \[half\]\)"
    ):
        load_tools([str(file)])
