"""The page of what each class supports names every contract test and every wire; its results are compared by `--supports check`."""

import ast
from pathlib import Path

import pytest

from tests.contract import test_parameters
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
    names = [f"`{name}`" for name in (*test_parameters.PARAMETERS, *test_parameters.CHOICES)]
    asked = behaviour_of(test_parameters.test_what_a_request_can_be_asked_for.__doc__)  # is there as a line for each parameter
    assert [text for text in (*behaviours, *names) if text != asked and f"| {text} |" not in said and f"- {text}\n" not in said] == []
    assert all(f"<br>{wire.name} |" in said for wire in ROWS)


def test_what_differs_comes_first_and_what_holds_everywhere_last() -> None:
    """What passed at every row is one line at the end; a row's reason says why something is not; each group has tables of its own."""
    supports = Supports("check")
    no = "the vendor has no such thing"
    for line, behaviour in enumerate(("Nothing is done", "A thing is done", "All do this")):
        supports._order["tests/contract/test_x.py", line, 0] = "What is done", behaviour
    for wire, outcomes in {"a": {"passed"}, "b": {"passed", no}, "c": {no}, "preset": {"passed"}}.items():
        supports._outcomes[wire, "A thing is done"] = outcomes
        supports._outcomes[wire, "All do this"] = {"passed"}
    supports._outcomes["a", "Nothing is done"] = {"passed"}
    page = supports.page({"wires": ["a", "b", "c"], "presets": ["preset"]})
    assert "\n## What differs: wires\n\n### What is done\n\n| | `a`<br>a | `b`<br>b | `c`<br>c |\n|---|---|---|---|\n" in page
    assert "| A thing is done | yes | partly (1) | no (1) |\n" in page
    assert "| Nothing is done | yes | not tested | not tested |\n" in page
    assert page.split("## What differs: presets\n")[1].startswith(
        "\n### What is done\n\n| | `preset`<br>preset |\n|---|---|\n| A thing is done | yes |\n"
    )
    end = "## Why not\n\n1. the vendor has no such thing\n\n## What holds for every class\n\n**What is done**\n\n- All do this\n"
    assert page.endswith(end)
