"""Every argument of a chat model says what it means: in the docstring under its field, where editors look, and in its description."""

import ast
import inspect
import textwrap

from langchain_core.language_models import BaseChatModel

import langchain_autotools
from langchain_autotools import ToolsAndMessagesMixin
from langchain_autotools.testing import ScriptedChatModel

CLASSES = [getattr(langchain_autotools, name) for name in langchain_autotools.__all__ if "Chat" in name]
MODELS = [cls for cls in (*CLASSES, ScriptedChatModel) if isinstance(cls, type) and issubclass(cls, ToolsAndMessagesMixin)]
OWN = sorted(
    {base for model in MODELS for base in model.__mro__ if base.__module__.startswith("langchain_autotools")}, key=lambda c: c.__qualname__
)


def docstrings(cls: type) -> dict[str, str]:
    """The docstrings under the names that a class declares."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(node, ast.ClassDef)
    return {
        one.target.id: inspect.cleandoc(after.value.value)
        for one, after in zip(node.body, node.body[1:], strict=False)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
    }


def own_fields(cls: type) -> dict[str, str | None]:
    """The descriptions of the fields that a class declares."""
    fields = getattr(cls, "model_fields", {})
    return {name: fields[name].description for name in inspect.get_annotations(cls) if name in fields}


def test_every_argument_is_described() -> None:
    """No field that a user can set goes without a description; what LangChain declares, LangChain describes."""
    for cls in OWN:
        fields, described = own_fields(cls), docstrings(cls)
        assert [f"{cls.__qualname__}.{name}" for name in fields if name not in described] == []
        assert fields == {name: described[name] for name in fields}, cls.__qualname__


def test_an_inherited_argument_keeps_its_description() -> None:
    """A class, and one that a user derives from it, describes what it inherits; only LangChain's own fields are as LangChain has them."""
    for model in MODELS:
        derived = type("Derived", (model,), {"__module__": __name__})
        for cls in (model, derived):
            fields = cls.model_fields
            told = [f"{model.__qualname__}.{name}" for name in fields if name not in BaseChatModel.model_fields]
            assert [name for name in told if not fields[name.rpartition(".")[2]].description] == []
