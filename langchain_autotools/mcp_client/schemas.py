"""The schemas of an MCP server's tools, in a form that every vendor takes.

A schema that they all take stays as it is. Of another one as much is kept as can be: what is invalid is left out, references lead to
definitions at the top, and what is combined there becomes one object, which takes whatever one of the alternatives describes. What that
does not say is said in words. Arguments are checked against all that is valid of the schema that the server has listed.

What vendors refuse: at the top anything but an object with properties (all), arrays without `items` (OpenAI, Google), a `pattern` that is
none in Python's dialect (OpenAI: langfuse/langfuse#14770, agigante80/actual-mcp-server#293), and names of arguments other than
`[a-zA-Z0-9_.-]{1,64}` (Anthropic: anthropics/claude-code#34771, ComposioHQ/composio#3500).
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, islice
from typing import Any
from urllib.parse import unquote

from ..strict_json import canonical, mend_surrogates

_logger = logging.getLogger("langchain_autotools")

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_LEGAL_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_TAKEN_KEYS = frozenset({"context_of_call"})  # the parameter of the function that calls a tool
_CLEANED = 55  # what 64 letters leave beside `_` and the digest


class UnusableSchemaError(Exception):
    """Raised for a schema that cannot be adapted; its text says why."""


def alias_of(text: str) -> str:
    """Return a name that every vendor takes, of any text: what it has of legal signs, with a digest."""
    cleaned = _ILLEGAL.sub("_", text)
    started = cleaned if re.match("[A-Za-z_]", cleaned) else f"_{cleaned}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{started[:_CLEANED]}_{digest[:8]}"


def _quoted(value: Any, most: int = 300) -> str:
    """Return the JSON of a value for a sentence, cut where it is long."""
    return _cut(mend_surrogates(json.dumps(value, ensure_ascii=False, default=str)), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


@dataclass(frozen=True)
class Form:
    """How the arguments of a tool are declared.

    Attributes:
        declared: Their schema as a model is told of it.
        keys: The server's names of arguments, by the names under which a model is told of them, where these differ.
        notes: What the declaration does not say, in sentences.
        check: Checks arguments.
    """

    declared: Mapping[str, Any]
    keys: Mapping[str, str]
    notes: Sequence[str]
    check: "ArgumentCheck"


def adapted(schema: Any, label: str = "the schema") -> Form:
    """Return the form of a tool's arguments that every vendor takes; of a schema that they all take, that itself.

    Args:
        schema: The schema as the server lists it: anything, or None.
        label: What logs call it.

    Raises:
        UnusableSchemaError: There is none.
    """
    own = {} if schema is None or schema is True else schema
    if not isinstance(own, dict):
        raise UnusableSchemaError("its inputSchema is no object")
    try:
        tidied, invalid = _Document(own).tidied()
        flattened, lost = _Flattening(tidied).result()
        declared, keys = _with_legal_keys(flattened)
        mended = json.loads(mend_surrogates(json.dumps(declared, ensure_ascii=False)))
    except RecursionError:
        raise UnusableSchemaError(_TOO_LARGE) from None
    notes = [*(f"Arguments: {one}." for one in invalid), *lost]
    return Form(own if mended == own else mended, keys, notes, ArgumentCheck(tidied, keys, label, whole=tidied == own))


# ---------------------------------------------------------------------------------------------- a valid schema


_DEEPEST = 100  # levels of JSON; encoders go down in recursions
_MOST_VALUES = 100_000
_MOST_SCHEMAS = 10_000  # with those that are referred to written out
_TOO_LARGE = "its schema is too large, or nested too deeply"


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in JSON data."""
    layer = [value]
    while layer:
        yield from (one for one in layer if isinstance(one, dict))
        layer = _inner_values(layer)


def _inner_values(layer: Sequence[Any]) -> list[Any]:
    return list(chain.from_iterable(one.values() if isinstance(one, dict) else one for one in layer if isinstance(one, dict | list)))


_DEFINITIONS = ("$defs", "definitions")
_ONE = frozenset(
    {
        *("items", "not", "additionalProperties", "contains", "if", "then", "else", "propertyNames", "additionalItems"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
    }
)
_LISTS = frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", *_DEFINITIONS})
_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return _is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _is_kind(value: Any) -> bool:
    return isinstance(value, str) and value in _TYPES


def _is_pattern(value: Any) -> bool:
    """Whether a value is a regular expression in Python's dialect, the one that a vendor checks it by."""
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except (re.error, OverflowError, RecursionError, Warning):
        return False


_VALID: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("title", "description", "format", "$schema", "$comment", "$id", "$anchor", "$ref"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_size),
    **dict.fromkeys((*_ONE - {"items"},), _is_schema),
    **dict.fromkeys(_MAPS, lambda value: isinstance(value, dict)),
    **dict.fromkeys((*_LISTS, "enum"), lambda value: isinstance(value, list) and bool(value)),
    "items": lambda value: _is_schema(value) or isinstance(value, list),
    "required": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "pattern": _is_pattern,
    "type": lambda value: bool(kinds := value if isinstance(value, list) else [value]) and all(map(_is_kind, kinds)),
    "uniqueItems": lambda value: isinstance(value, bool),
}
"""What the values of keywords must be, by keyword."""

_UNTOLD = frozenset({"title", "description", "required", "$schema", "$comment", "$id", "$anchor"})
"""The keywords whose invalid values are left out without a word."""


class _Document:
    """A schema of a server on its way to one that is valid, and whose references are those that vendors know.

    Args:
        root: The schema.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._moved: dict[str, str] = {}
        self._added: dict[str, Any] = {}

    def tidied(self) -> tuple[dict[str, Any], Sequence[str]]:
        """Return the schema without what is invalid, with references to its definitions alone, and what was invalid at its top.

        Raises:
            UnusableSchemaError: It is too large, or refers to something that is not there.
        """
        self._check_size()
        reference = self._root.get("$ref")
        if reference is not None and (not isinstance(reference, str) or self._plain(reference) is None):
            raise UnusableSchemaError(f"its schema is {_quoted(reference)}, which the server does not define")
        root, notes = self._parts(self._root)
        return {**root, "$defs": {**root.get("$defs", {}), **self._added}} if self._added else root, notes

    def _check_size(self) -> None:
        """Raise if the schema is too large to be read, also once what it refers to is written out, as some vendors need it.

        Raises:
            UnusableSchemaError: It is.
        """
        layer, count = [self._root], 0
        for _ in range(_DEEPEST):
            layer = _inner_values(layer)
            count += len(layer)
            if not layer or count > _MOST_VALUES:
                break
        if layer or next(islice(self._written_out(self._root, ()), _MOST_SCHEMAS, None), None) is not None:
            raise UnusableSchemaError(_TOO_LARGE)

    def _written_out(self, node: Any, inside: tuple[str, ...]) -> Iterator[Any]:
        """Yield each object of a schema, those that it refers to again for each reference."""
        if isinstance(node, list):
            for one in node:
                yield from self._written_out(one, inside)
        if not isinstance(node, dict):
            return
        yield node
        for key, value in node.items():
            if key not in _DEFINITIONS:
                yield from self._written_out(value, inside)
        reference = node.get("$ref")
        if isinstance(reference, str) and reference not in inside:
            yield from self._written_out(self._pointed(reference), (*inside, reference))

    @cached_property
    def _named(self) -> dict[str, Any]:
        """The schemas that have a name of their own, by reference; empty where no reference is to a name."""
        nodes = [*_nodes(self._root)]
        references = {node["$ref"] for node in nodes if isinstance(node.get("$ref"), str)}
        if all(re.match("#(/|$)", reference) for reference in references):
            return {}
        anchors = {f"#{node['$anchor']}": node for node in nodes if isinstance(node.get("$anchor"), str)}
        return {**{node["$id"]: node for node in nodes if isinstance(node.get("$id"), str)}, **anchors}

    def _pointed(self, reference: str) -> Any:
        """Return what a reference inside the document leads to; None if it leads nowhere, or out of it."""
        inside, mark, pointer = reference.partition("#")
        pointer = unquote(pointer)
        if (inside and inside != self._root.get("$id")) or (pointer and not pointer.startswith("/")) or not mark:
            return self._named.get(reference)
        found: Any = self._root
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(key)] if key.isdecimal() and int(key) < len(found) else None
            else:
                found = found.get(key) if isinstance(found, dict) else None
        return found

    def _defined(self, key: str) -> Mapping[str, Any]:
        found = self._root.get(key)
        return found if isinstance(found, dict) else {}

    def _tidied(self, node: dict[str, Any]) -> dict[str, Any]:
        return _noted(*self._parts(node))

    def _parts(self, node: dict[str, Any]) -> tuple[dict[str, Any], Sequence[str]]:
        """Return what is valid of a schema, and what is not in words."""
        kept: dict[str, Any] = {}
        notes: list[str] = []
        for key, value in node.items():
            if key in ("$id", "$anchor") and self._named and node is not self._root:
                continue  # what has led to it leads to a definition at the top, which is not inside it
            if key == "$ref" and isinstance(value, str):
                reference = self._plain(value)
                kept |= {} if reference is None else {key: reference}
                notes += [f"refers to {_quoted(value)}, which the server does not define"] if reference is None else []
            elif key not in _VALID or _VALID[key](value):
                kept[key] = self._inside(key, value)
            else:
                kept |= _mended_keyword(key, value)
                notes += [f"{key}: {_quoted(value)}"] if value and key not in kept and key not in _UNTOLD else []
        kinds = kept.get("type", ())
        if "array" in (kinds if isinstance(kinds, list) else (kinds,)) and not {"items", "prefixItems"} & kept.keys():
            kept["items"] = {}
        return kept, notes

    def _inside(self, key: str, value: Any) -> Any:
        """Return the value of a keyword with the schemas in it tidied."""
        if key in _MAPS or (key == "dependencies" and isinstance(value, dict)):
            entries = {name: self._schema(one) for name, one in value.items() if _is_schema(one) or key == "dependencies"}
            return {name: one for name, one in entries.items() if key != "properties" or value[name] is not False}
        if key in _LISTS or (key == "items" and isinstance(value, list)):
            return [self._schema(one) for one in value if _is_schema(one)]
        return self._tidied(value) if key in _ONE and isinstance(value, dict) else value

    def _schema(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._tidied(value)
        return value if not isinstance(value, bool) else {} if value else {"not": {}}

    def _plain(self, reference: str) -> str | None:
        """Return a reference to a definition at the top that says the same; None if it leads nowhere, or to itself alone."""
        found, met = self._pointed(reference), [reference]
        while isinstance(found, dict) and isinstance(found.get("$ref"), str):
            if found["$ref"] in met:
                return None
            met.append(found["$ref"])
            found = self._pointed(met[-1])
        if not _is_schema(found):
            return None
        if self._is_plain(reference):
            return reference
        if reference not in self._moved:
            taken = {*self._added, *(name for key in _DEFINITIONS for name in self._defined(key))}
            wanted = "arguments" if reference == "#" else _ILLEGAL.sub("_", reference.rpartition("/")[2])
            name = next(one for one in chain([wanted], (f"{wanted}_{number}" for number in count(2))) if one not in taken)
            self._moved[reference], self._added[name] = name, {}
            target = self._pointed(reference)
            inner = {key: value for key, value in target.items() if key not in _DEFINITIONS} if target is self._root else target
            self._added[name] = self._schema(inner)
        return f"#/$defs/{self._moved[reference]}"

    def _is_plain(self, reference: str) -> bool:
        """Whether a reference is written as every encoder of a vendor's form reads it, and means one definition."""
        _, *steps = reference.split("/")
        if len(steps) != 2 or steps[0] not in _DEFINITIONS or re.search("[%~]", steps[1]):
            return False
        found = [self._defined(key)[steps[1]] for key in _DEFINITIONS if steps[1] in self._defined(key)]
        return all(one == found[0] for one in found)


def _mended_keyword(key: str, value: Any) -> dict[str, Any]:
    """Return what is valid of a keyword's value."""
    if key == "required" and isinstance(value, list):
        return {key: [*filter(_is_text, value)]}
    if key == "type" and isinstance(value, list) and (kinds := [*filter(_is_kind, value)]):
        return {key: kinds}
    return {}


def _noted(node: dict[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    """Return a schema with notes in its description."""
    if not notes:
        return node
    said = node.get("description")
    return {**node, "description": f"{said} ({', '.join(notes)})" if said else f"({', '.join(notes)})"}


def _with_legal_keys(schema: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a flat schema whose arguments have names that every vendor takes, and the server's names of those that were changed.

    Raises:
        UnusableSchemaError: Two of them would have one name.
    """
    properties = schema["properties"]
    names = {name: alias_of(name) for name in properties if not _LEGAL_KEY.fullmatch(name) or name in _TAKEN_KEYS}
    if not names:
        return schema, {}
    keys = {alias: name for name, alias in names.items()}
    if len(keys) < len(names) or keys.keys() & properties.keys():
        raise UnusableSchemaError("two of its arguments cannot be told apart")
    told = {name: _noted(properties[name], [f"the server calls it {_quoted(name)}"]) for name in names}
    renamed: dict[str, Any] = {"properties": {names.get(name, name): told.get(name, one) for name, one in properties.items()}}
    if "required" in schema:
        renamed["required"] = [names.get(name, name) for name in schema["required"]]
    return {**schema, **renamed}, keys


# ---------------------------------------------------------------------------------------------- schemas with alternatives
#
# At the top of a schema vendors take an object with its properties, and nothing that combines schemas. What is combined there is joined
# to one object, which takes whatever one of the alternatives describes.


_COMBINING = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else", "$ref"})
_OF_OBJECTS = frozenset({"type", "properties", "required", "additionalProperties"})
_LONGEST_NOTE = 2_000
_ABOUT = frozenset({"title", "description", "default", "examples", "$schema", "$id", "$anchor", "$comment", *_DEFINITIONS})
_IGNORES_SIBLINGS = re.compile(r"draft-0?[3-7]\b")
_FAMILIES = (
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"},
    {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains", "maxContains"},
    {"if", "then", "else"},
)


@dataclass(frozen=True)
class _Shape:
    """The arguments that a schema describes.

    Attributes:
        properties: Their schemas, by name.
        required: The names of those that must be given.
        closed: Whether no others may be given.
        others: What else the schema says of them.
    """

    properties: Mapping[str, Any] = field(default_factory=dict)
    required: Sequence[str] = ()
    closed: bool = False
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """The arguments in words."""
        texts = []
        for name, schema in self.properties.items():
            values = _values_of(schema)
            text = f"{name} = {_quoted(values[0], 50)}" if values is not None and len(values) == 1 else name
            texts.append(text if name in self.required else f"{text} (optional)")
        return ", ".join([*texts, *(name for name in self.required if name not in self.properties)]) or "none of these"


_ANYTHING = _Shape()


class _Flattening:
    """The way of a tidied schema to one with an object at its top.

    Args:
        root: The schema.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._definitions = {name: one for key in _DEFINITIONS for name, one in root.get(key, {}).items()}
        self._ignores_siblings = bool(_IGNORES_SIBLINGS.search(str(root.get("$schema", ""))))
        self._notes: list[str] = []

    def result(self) -> tuple[dict[str, Any], Sequence[str]]:
        """Return the schema, and what it does not say any more, in sentences.

        Raises:
            UnusableSchemaError: It describes no object.
        """
        shape = self._shape(self._root, (), told=True)
        if shape is None:
            raise UnusableSchemaError("its schema describes no object")
        missing: dict[str, Any] = {name: {} for name in shape.required if name not in shape.properties}
        if not self._root.keys() & _COMBINING and self._root.get("type") == "object" and not missing:
            return {"properties": {}, **self._root}, ()
        made: dict[str, Any] = {"type": "object", "properties": {**shape.properties, **missing}}
        made |= {"required": list(shape.required)} if shape.required else {}
        around = {key: value for key, value in self._root.items() if key not in _COMBINING | _OF_OBJECTS}
        extra = {"additionalProperties": False} if shape.closed else {}
        return {**around, **shape.others, **made, **extra}, self._notes

    def _shape(self, node: Any, inside: tuple[str, ...], *, told: bool) -> _Shape | None:
        """Return what a schema describes of objects; None if no object fits it.

        Args:
            node: The schema.
            inside: The definitions that are being read.
            told: Whether what is lost of it is told.
        """
        if not isinstance(node, dict):
            return _ANYTHING if node else None
        if (reference := node.get("$ref")) is not None:
            name = reference.rpartition("/")[2]
            beside = {} if self._ignores_siblings else {key: value for key, value in node.items() if key != "$ref"}
            target = _ANYTHING if name in inside else self._shape(self._definitions[name], (*inside, name), told=told)
            return _all_together([target, self._shape(beside, inside, told=told)])
        kinds = node.get("type", "object")
        if "object" not in (kinds if isinstance(kinds, list) else [kinds]) or node == {"not": {}}:
            return None
        parts = [_own_shape(node), *(self._shape(one, inside, told=told) for one in node.get("allOf", ()))]
        parts += [self._one_of(key, node[key], inside, told=told) for key in ("anyOf", "oneOf") if key in node]
        if "enum" in node or "const" in node:
            values = [node["const"]] if "const" in node else node["enum"]
            parts.append(self._one_of("enum", [_of_value(one) for one in values], inside, told=told))
        if "if" in node:
            parts.append(_either([self._shape(node.get(key, True), inside, told=False) or _ANYTHING for key in ("then", "else")]))
        self._notes += _conditions(node) if told else ()
        return _all_together(parts)

    def _one_of(self, key: str, alternatives: Sequence[Any], inside: tuple[str, ...], *, told: bool) -> _Shape | None:
        shapes = [(one, shape) for one in alternatives if (shape := self._shape(one, inside, told=False)) is not None]
        if told and len({canonical([shape.said, one.get("required")]) for one, shape in shapes}) > 1:
            said = "; ".join(f"{number}) {shape.said}{_about(one)}" for number, (one, shape) in enumerate(shapes, 1))
            words = "at least one" if key == "anyOf" else "exactly one"
            self._notes.append(f"Arguments must match {words} of these: {_cut(said, _LONGEST_NOTE)}.")
        return _either([shape for _, shape in shapes])


def _own_shape(node: Mapping[str, Any]) -> _Shape:
    properties, open_to = node.get("properties", {}), node.get("additionalProperties", True)
    others = {key: value for key, value in node.items() if key not in _COMBINING | _ABOUT | {"type", "properties", "required"}}
    closed = open_to is False and not node.get("patternProperties")
    if closed:
        del others["additionalProperties"]
    return _Shape(properties, list(dict.fromkeys(node.get("required", ()))), closed, others)


def _of_value(value: Any) -> Any:
    """Return the schema that an object alone fits; of another value, one that no object fits."""
    if not isinstance(value, dict):
        return {"type": "null"}
    properties = {name: {"const": one} for name, one in value.items()}
    return {"type": "object", "properties": properties, "required": list(value), "additionalProperties": False}


def _all_together(shapes: Sequence[_Shape | None]) -> _Shape | None:
    """Return what fits all shapes. Of parts that exclude the arguments of each other, which a server can hardly mean, all are kept."""
    made = shapes[0]
    for shape in shapes[1:]:
        if made is None or shape is None:
            return None
        names = dict.fromkeys([*made.properties, *shape.properties])
        properties = {name: _all_of([one.properties[name] for one in (made, shape) if name in one.properties]) for name in names}
        required = list(dict.fromkeys([*made.required, *shape.required]))
        closed = any(one.closed and names.keys() <= one.properties.keys() for one in (made, shape))
        made = _Shape(properties, required, closed, {**shape.others, **made.others})
    return made


def _either(shapes: Sequence[_Shape]) -> _Shape | None:
    """Return what takes all that fits one of these shapes; None where there is none."""
    if not shapes:
        return None
    names = dict.fromkeys(name for shape in shapes for name in shape.properties)
    properties = {name: _any_of([shape.properties[name] for shape in shapes if name in shape.properties]) for name in names}
    required = [name for name in shapes[0].required if all(name in shape.required for shape in shapes)]
    return _Shape(properties, required, all(shape.closed for shape in shapes), shapes[0].others if len(shapes) == 1 else {})


def _all_of(schemas: Sequence[Any]) -> Any:
    """Return the schema of what fits all schemas, as one where that says the same; the first one describes it."""
    first, *others = [one for number, one in enumerate(schemas) if one and one not in schemas[:number]] or [{}]
    if not others:
        return first
    (other,) = others
    same = {key for key in first.keys() & other.keys() if first[key] != other[key]} <= {"title", "description", "default"}
    apart = not any(first.keys() & family and other.keys() & family for family in _FAMILIES)
    plain = "$ref" not in first and "$ref" not in other
    return {**other, **first} if same and apart and plain else {"allOf": [first, other]}


def _any_of(schemas: Sequence[Any]) -> Any:
    """Return the schema of what fits one of the schemas: an enumeration where all of them name their values."""
    distinct = [one for number, one in enumerate(schemas) if one not in schemas[:number]]
    if len(distinct) == 1:
        return distinct[0]
    values = [_values_of(one) for one in distinct]
    if None in values or any(one.keys() - {"type", "const", "enum", "title", "default"} for one in distinct):
        return {"anyOf": distinct}
    kinds = {canonical(one.get("type")): one.get("type") for one in distinct}
    unlike = {canonical(value): value for one in values for value in one or ()}
    kind = next(iter(kinds.values())) if len(kinds) == 1 else None
    return {**({} if kind is None else {"type": kind}), "enum": list(unlike.values())}


def _values_of(schema: Any) -> list[Any] | None:
    """Return the values that a schema names; None if it names none."""
    if not isinstance(schema, dict):
        return None
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _about(node: Mapping[str, Any]) -> str:
    said = node.get("description") or node.get("title")
    return f" ({said[:200]})" if said else ""


def _conditions(node: Mapping[str, Any]) -> list[str]:
    """Return what a flat object cannot say of conditions, in sentences."""
    texts = [f"Arguments must not match {_quoted(node['not'])}."] if "not" in node else []
    rules = [f"{word} {_quoted(node[key])}" for word, key in (("they must match", "then"), ("else", "else")) if key in node]
    return [*texts, f"If arguments match {_quoted(node['if'])}, {', '.join(rules)}."] if "if" in node and rules else texts


# ---------------------------------------------------------------------------------------------- checking arguments


_UNSURE = frozenset({"pattern", "patternProperties", "multipleOf", "divisibleBy"})
"""Keywords that are the server's to check: their rules differ between languages, and an expression of a stranger may never end."""
_NEGATING = ("not", "if", "contains", "disallow", "unevaluatedItems", "unevaluatedProperties")
"""Keywords that would refuse what is valid where something in them is not checked, or less strictly."""
_WITH_PARTS = frozenset({"allOf", "anyOf", "oneOf", "if", "$ref"})
_PROBLEMS = 5


class ArgumentCheck:
    """The check of arguments against the schema that a server has listed. Nothing that it refers to is fetched.

    Args:
        schema: The schema, without what is invalid.
        keys: The server's names of arguments, by those under which a model is told of them, where these differ.
        label: What logs call the schema.
        whole: Whether all of the server's schema is valid.
    """

    def __init__(self, schema: Mapping[str, Any], keys: Mapping[str, str], label: str, *, whole: bool) -> None:
        self._whole = whole
        self._schema = schema
        self._keys = keys
        self._shown = {own: shown for shown, own in keys.items()}
        self._label = label
        self._given_up = False

    def problem(self, arguments: Mapping[str, Any]) -> str | None:
        """Return what is wrong with arguments, without their values; None if nothing is known to be."""
        twice = next((name for name in arguments if self._keys.get(name) in arguments), None)
        if twice is not None:
            return f"{twice!r} and {self._keys[twice]!r} are one argument: give {twice!r} alone"
        if self._given_up:
            return None
        given = {self._keys.get(name, name): value for name, value in arguments.items()}
        try:
            texts = dict.fromkeys(map(self._described, self._validator.iter_errors(given)))
        except Exception as error:  # whatever the library raises for a schema that is none, or leads out of itself
            self._given_up = True
            why = str(getattr(error, "message", error)) or type(error).__name__
            _logger.warning("%s cannot be used to check arguments: %s", self._label, why.partition("\n")[0][:200])
            return None
        return "; ".join([*texts][:_PROBLEMS]) or None

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft201909Validator, Draft202012Validator
        from jsonschema.validators import extend, validator_for
        from referencing import Registry

        has_tuples = any(isinstance(node.get("items"), list) for node in _nodes(self._schema))
        kind = validator_for(self._schema, default=Draft201909Validator if has_tuples else Draft202012Validator)
        kind.check_schema(self._schema, format_checker=None)
        known = {*chain.from_iterable(_nodes(self._schema))}
        # alternatives that overlap, and parts that exclude each other, are a server's mistakes, by which no call would be possible
        changed: dict[str, Any] = {"oneOf": kind.VALIDATORS.get("anyOf", _unchecked), **_outside_parts(kind, "allOf" in known)}
        changed |= dict.fromkeys((*_UNSURE, "additionalProperties"), _unchecked) if known & _UNSURE else {}
        if not self._whole or known & {*_UNSURE, "oneOf"} or ("additionalProperties" in known and known & _WITH_PARTS):
            changed |= dict.fromkeys(_NEGATING, _unchecked)
        return extend(kind, changed)(self._schema, registry=Registry())

    def _described(self, error: Any) -> str:
        path = [*error.absolute_path]
        place = ".".join(map(str, [self._shown.get(path[0], path[0]), *path[1:]] if path else ()))
        return ": ".join(filter(None, (place, self._text(error, at_top=not path))))

    def _text(self, error: Any, *, at_top: bool) -> str:
        rule, value = error.validator, error.validator_value
        if rule == "required" and isinstance(value, list):
            missing = [self._shown.get(name, name) if at_top else name for name in value if name not in error.instance]
            return f"{', '.join(map(repr, missing))} is missing"
        if rule in ("additionalProperties", "unevaluatedProperties", "dependentRequired"):
            return str(error.message)
        if rule in ("anyOf", "oneOf"):
            first: dict[Any, str] = {}
            for one in error.context:
                first.setdefault(one.schema_path[0], self._described(one))
            texts = [f"{number + 1}) {text}" for number, text in [*first.items()][:_PROBLEMS]]
            return f"none of the alternatives fits: {'; '.join(texts)}"
        return _RULES.get(rule, f"must satisfy {rule}: {{}}" if rule else "is not allowed").format(_quoted(value, 200))


class OutputCheck:
    """The check of structured results against the schema that a server has listed for them. A result that does not fit is kept.

    Args:
        schema: The schema; anything else checks nothing.
        label: What logs call it.
    """

    def __init__(self, schema: Any, label: str) -> None:
        self._schema = schema if isinstance(schema, Mapping) else None
        self._label = label

    def check(self, artifact: Any) -> None:
        """Log a WARNING if the structured part of a result does not fit."""
        if self._schema is None or not isinstance(artifact, Mapping):
            return
        try:
            error = next(iter(self._validator.iter_errors(artifact["structured_content"])), None)
            why = None if error is None else f"{'.'.join(map(str, error.absolute_path)) or 'the result'} breaks its {error.validator!r}"
        except Exception as broken:  # whatever the library raises for a schema that is none, or leads out of itself
            why = f"{type(broken).__name__} in it"
        if why is not None:
            _logger.warning("a result does not fit %s, and is kept: %s", self._label, why)

    @cached_property
    def _validator(self) -> Any:
        from jsonschema.validators import validator_for
        from referencing import Registry

        return validator_for(self._schema)(self._schema, registry=Registry())


def _unchecked(*_: Any) -> tuple[()]:
    """Return no error."""
    return ()


def _outside_parts(kind: Any, joins: bool) -> dict[str, Any]:
    """Return the check for further properties of schemas that are not made of parts; `joins`: whether some may be parts themselves."""
    check = kind.VALIDATORS["additionalProperties"]

    def checked(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
        return () if joins or schema.keys() & _WITH_PARTS else check(validator, value, instance, schema)

    return {"additionalProperties": checked}


_RULES = {"type": "must be of type {}", "enum": "must be one of {}", "const": "must be {}", "not": "must not match {}"}
