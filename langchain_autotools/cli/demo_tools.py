"""The built-in tools of the command line: harmless, without network, plain enough for a very small model."""

import ast
import operator
from collections.abc import Callable
from datetime import datetime

from langchain_core.tools import BaseTool, tool

# Invented, and fixed: the same question gets the same answer.
TEMPERATURES = {
    "amsterdam": 14, "athens": 26, "beijing": 17, "berlin": 13, "buenos aires": 19, "cairo": 30, "delhi": 33, "dublin": 11,
    "helsinki": 7, "istanbul": 20, "lagos": 31, "lisbon": 22, "london": 12, "los angeles": 24, "madrid": 23, "mexico city": 21,
    "moscow": 5, "mumbai": 32, "nairobi": 25, "new york": 16, "oslo": 6, "paris": 18, "prague": 10, "reykjavik": 3,
    "rio de janeiro": 27, "rome": 24, "san francisco": 15, "singapore": 31, "stockholm": 8, "sydney": 20, "tokyo": 19,
    "toronto": 9, "vienna": 14, "warsaw": 9, "zurich": 12,
}  # fmt: skip

_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_LONGEST = 200


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    name = city.split(",")[0].strip().casefold()
    if name in TEMPERATURES:
        return f"{TEMPERATURES[name]} °C"
    # A city that is not in the table has a temperature too, always the same.
    return f"{10 + sum(map(ord, name)) % 15} °C"


@tool
def calculate(expression: str) -> str:
    """Result of an arithmetic expression, such as 3 * (4 + 5)."""
    if len(expression) > _LONGEST:
        raise ValueError(f"an expression has at most {_LONGEST} characters")
    text = expression.replace("×", "*").replace("÷", "/").replace("−", "-")
    value = _evaluate(ast.parse(text.strip(), mode="eval").body)
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def _evaluate(node: ast.AST) -> float:
    """Return the value of an expression of numbers, `+ - * / // %` and parentheses: nothing can be executed or grow large."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    raise ValueError("only numbers, + - * / // % and parentheses are understood")


@tool
def get_current_time() -> str:
    """Current local date and time."""
    return datetime.now().astimezone().strftime("%A, %Y-%m-%d %H:%M %Z")


DEMO_TOOLS: tuple[BaseTool, ...] = (get_temperature, calculate, get_current_time)
"""The tools of a conversation if the user names none."""

SMALL_MODEL_TOOLS: tuple[BaseTool, ...] = (get_temperature,)
"""The tools for the default local model, which confuses two or more (numbers in docs/local_model.md)."""
