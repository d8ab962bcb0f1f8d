"""Small wrong changes of a module, one at a time: what the tests must notice."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "langchain_autotools"
ROOMS = ("run", "turn", "tool_calls", "history", "executor", "durable", "encoders", "showing", "providers")

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SUMS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_NOT_LOOKED_INTO = frozenset({"annotation", "returns", "decorator_list"})
_BODIES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While, ast.If)
_FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Change:
    """One possible change of a syntax tree.

    Attributes:
        node: What is changed, or what is around it, for its text.
        kind: Which of the changes of this node it is.
        line: Where it is.
        lines: The lines whose tests can tell: those of the statement that it is in (of one that holds others, of its head); of a
            parameter's default, which is read when the module is loaded, those of the function.
        statement: The text of that statement before any change.
        function: The qualified name of the outermost function that it is in; empty in the module's or a class's own body.
        apply: Changes the tree.
    """

    node: ast.AST
    kind: int
    line: int
    lines: range
    statement: str
    function: str
    apply: Callable[[], None]


@dataclass(frozen=True)
class Mutant:
    """A module of the package with one change.

    Attributes:
        path: The module, below the package.
        number: The number of the change among those of the module.
        line: Where it is.
        lines: The lines whose tests can tell.
        function: The function that it is in.
        nth: The number of the change among those of the function.
        among: How many there are of the function.
        statement: The statement that it is in.
        was: The text before.
        becomes: The text after.
        kind: Which of the changes of its node it is.
        place: Which it is of several in functions of this name that read the same.
    """

    path: str
    number: int
    line: int
    lines: range
    function: str
    nth: int
    among: int
    statement: str
    was: str
    becomes: str
    kind: int
    place: int

    @property
    def room(self) -> str:
        """The room of the module."""
        return self.path.split("/")[0]

    @property
    def key(self) -> str:
        """What it is known by, wherever its function has moved to."""
        place = f" #{self.place}" if self.place > 1 else ""
        return f"{_before(self.function, self.statement, self.was)} -> {self.becomes}{place}"


@dataclass(frozen=True)
class Spot:
    """Where a module can be changed, and what is read there before.

    Attributes:
        path: The module.
        number: The number of the change among those of the module.
        function: The function that it is in.
        nth: The number of the change among those of the function.
        among: How many there are of the function.
        read: The function, the statement, the text and which change of it: alike wherever the function is.
        place: Which it is of several that read the same.
    """

    path: Path
    number: int
    function: str
    nth: int
    among: int
    read: tuple[str, str, str, int]
    place: int

    def mutant(self) -> Mutant:
        """The change, made."""
        change = _changes(ast.parse(self.path.read_text()))[self.number]
        change.apply()
        function, statement, was, kind = self.read
        which = (self.path.relative_to(PACKAGE).as_posix(), self.number, change.line, change.lines)
        return Mutant(*which, function, self.nth, self.among, statement, was, _text(change.node), kind, self.place)


def spots(paths: Iterable[Path]) -> Iterator[Spot]:
    """Where these modules can be changed."""
    same: Counter[tuple[str, str, str, int]] = Counter()
    for path in paths:
        changes = _changes(ast.parse(path.read_text()))
        among, nth = Counter(change.function for change in changes), Counter[str]()
        for number, change in enumerate(changes):
            read = (change.function, change.statement, _text(change.node), change.kind)
            same[read] += 1
            nth[change.function] += 1
            yield Spot(path, number, change.function, nth[change.function], among[change.function], read, same[read])


def sample(count: int, seed: int, only: str = "", rooms: Sequence[str] = ROOMS) -> tuple[list[Mutant], int]:
    """So many mutants of the rooms, of them those in modules whose path has the text `only`, and how many there are.

    Each has its place in the draw by what it changes, not by where that is: where the package changes, the others stay drawn.
    """
    there = list(spots(path for room in rooms for path in sorted((PACKAGE / room).rglob("*.py"))))
    there.sort(key=lambda spot: sha256(f"{seed} {spot.read} {spot.place}".encode()).digest())
    return [spot.mutant() for spot in there[:count] if only in spot.path.relative_to(PACKAGE).as_posix()], len(there)


def places(words: Collection[str]) -> set[str]:
    """What the keys of the mutants say before the change, of the package's modules that have one of these words."""
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")
    return {_before(*spot.read[:3]) for spot in spots(path for path in sorted(PACKAGE.rglob("*.py")) if word.search(path.read_text()))}


def _before(function: str, statement: str, was: str) -> str:
    return f"{function or '-'}: {'' if statement == was else f'{statement}: '}{was}"


def mutated(path: Path, number: int) -> ast.Module:
    """The module's tree with the change of this number."""
    tree = ast.parse(path.read_text())
    _changes(tree)[number].apply()
    return ast.fix_missing_locations(tree)


def _head(statement: ast.stmt) -> str:
    if isinstance(statement, _FUNCTION_NODES):
        return f"def {statement.name}"
    return _text(statement) if not hasattr(statement, "body") else ast.unparse(statement).split("\n")[0].rstrip(":")


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 110 else f"{text[:107]}..."


def _changes(tree: ast.Module) -> list[Change]:
    return list(_of_children(tree, _Around()))


@dataclass(frozen=True)
class _Around:
    """What is around a node."""

    names: tuple[str, ...] = ()
    function: str = ""
    statement: str = ""
    lines: range = range(0)

    def within(self, node: ast.AST) -> "_Around":
        """What is around the children of the node."""
        names, function = self.names, self.function
        if not isinstance(node, ast.stmt):
            return self
        if isinstance(node, ast.ClassDef):
            names = (*names, node.name)
        elif isinstance(node, _FUNCTION_NODES):
            function = function or ".".join((*names, node.name))
        return _Around(names, function, _head(node), _lines(node))


def _lines(statement: ast.stmt) -> range:
    first, after = statement.lineno, (statement.end_lineno or statement.lineno) + 1
    body = [child.lineno for child in getattr(statement, "body", ()) if isinstance(child, ast.stmt)]
    if isinstance(statement, _FUNCTION_NODES):
        return range(body[0], after)
    return range(first, max(min(body, default=after), first + 1))


def _of_children(node: ast.AST, around: _Around) -> Iterator[Change]:
    for field, value in ast.iter_fields(node):
        if field in _NOT_LOOKED_INTO:
            continue
        for place, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST) and not _is_left_out(child):
                if isinstance(value, list) and isinstance(child, ast.stmt) and _may_go(child):
                    yield _dropped(value, place, child, around.within(child))
                yield from _of_node(child, node, around)


def _of_node(node: ast.AST, parent: ast.AST, around: _Around) -> Iterator[Change]:
    shown = parent if isinstance(node, ast.Constant) and not isinstance(parent, _BODIES) else node
    inside = around.within(node)
    for kind, apply in enumerate(_variants(node)):
        yield Change(shown, kind, getattr(node, "lineno", 0), inside.lines, inside.statement, around.function, apply)
    yield from _of_children(node, inside)


def _is_left_out(node: ast.AST) -> bool:
    """What no test should look at: texts, the public names, what only type checkers read, assertions, what the log says in detail."""
    if isinstance(node, ast.Assert | ast.JoinedStr):
        return True
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, _FUNCTION_NODES):
        return any(isinstance(one, ast.Name) and one.id == "overload" for one in node.decorator_list)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) == "_logger.debug"
    return False


def _may_go(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call | ast.Await)
    if isinstance(statement, ast.Assign):
        return not any(isinstance(target, ast.Name | ast.Tuple) for target in statement.targets)
    return isinstance(statement, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete)


def _dropped(body: list[ast.stmt], place: int, statement: ast.stmt, inside: _Around) -> Change:
    """The statement becomes `pass`. The holder stands for it, since the statement itself stays what it is."""
    holder = ast.Module(body=[statement], type_ignores=[])

    def apply() -> None:
        body[place] = ast.copy_location(ast.Pass(), statement)
        holder.body = [body[place]]

    return Change(holder, -1, statement.lineno, inside.lines, inside.statement, inside.function, apply)


def _setter(node: ast.AST, field: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, field, value)


def _variants(node: ast.AST) -> Iterator[Callable[[], None]]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            yield _setter(node, "ops", [*node.ops[:place], _COMPARISONS[type(operator)](), *node.ops[place + 1 :]])
    elif isinstance(node, ast.BoolOp):
        yield _setter(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _setter(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _SUMS:
        yield _setter(node, "op", _SUMS[type(node.op)]())
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield _setter(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        yield _setter(node.func, "id", _FUNCTIONS[node.func.id])
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _other_constants(node: ast.Constant) -> Iterator[Callable[[], None]]:
    if isinstance(node.value, bool):
        yield _setter(node, "value", not node.value)
    elif isinstance(node.value, int | float):
        yield _setter(node, "value", node.value + 1)
        yield _setter(node, "value", node.value - 1)
