"""The page of what each class supports names every contract test and every wire; its results are compared by `--supports check`."""

import ast
from pathlib import Path

import pytest

from tests.contract.supports import OPTION, PAGE, Supports, behaviour_of
from tests.contract.wires import ROWS


def test_every_behaviour_and_wire_is_on_the_page(pytestconfig: pytest.Config) -> None:
    """A contract test or a wire that was added is missing on the page until it is made anew."""
    if pytestconfig.getoption(OPTION) == "write":
        pytest.skip("the page is written when the tests have ended")
    said = PAGE.read_text(encoding="utf-8")
    tests = [
        node
        for path in sorted(Path(__file__).parent.glob("test_*.py"))
        if path != Path(__file__)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if {"start", "wire", "run"} & {argument.arg for argument in node.args.args}
    ]
    behaviours = [behaviour_of(ast.get_docstring(node)) for node in tests]
    assert [text for text in behaviours if f"| {text} |" not in said] == []
    assert said.count("yes") + said.count("no (") + said.count("partly (") >= len(behaviours) * len(ROWS)
    assert all(f"<br>{wire.name} |" in said for wire in ROWS)


def test_outcomes_become_words() -> None:
    """What passed in every way is supported; a row's reason says why something is not; each group of rows has tables of its own."""
    supports = Supports("check")
    no = "the vendor has no such thing"
    for line, behaviour in enumerate(("Nothing is done", "A thing is done")):
        supports._order["tests/contract/test_x.py", line] = "What is done", behaviour
    for wire, outcomes in {"a": {"passed"}, "b": {"passed", no}, "c": {no}, "preset": {"passed"}}.items():
        supports._outcomes[wire, "A thing is done"] = outcomes
    supports._outcomes["a", "Nothing is done"] = {"passed"}
    page = supports.page({"Wires": ["a", "b", "c"], "Presets": ["preset"]})
    assert "\n## Wires\n\n### What is done\n\n| | `a`<br>a | `b`<br>b | `c`<br>c |\n|---|---|---|---|\n" in page
    assert "| A thing is done | yes | partly (1) | no (1) |\n" in page
    assert "| Nothing is done | yes | not tested | not tested |\n" in page
    assert page.split("## Presets\n")[1].startswith(
        "\n### What is done\n\n| | `preset`<br>preset |\n|---|---|\n| A thing is done | yes |\n"
    )
    assert page.endswith("## Why not\n\n1. the vendor has no such thing\n")
