"""Every argument of a chat model says what it means: in the docstring under its field, where editors look, and in its description."""

import ast
import inspect
import textwrap

import pytest
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


@pytest.mark.parametrize("cls", OWN, ids=lambda cls: cls.__qualname__)
def test_every_argument_is_described(cls: type) -> None:
    """No field that a user can set goes without a description; what LangChain declares, LangChain describes."""
    fields, described = own_fields(cls), docstrings(cls)
    assert [name for name in fields if name not in described] == []
    assert fields == {name: described[name] for name in fields}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__qualname__)
def test_an_inherited_argument_keeps_its_description(model: type[ToolsAndMessagesMixin]) -> None:
    """A class, and one that a user derives from it, describes what it inherits; only LangChain's own fields are as LangChain has them."""
    derived = type("Derived", (model,), {"__module__": __name__})
    for cls in (model, derived):
        fields = cls.model_fields
        assert [name for name in fields if name not in BaseChatModel.model_fields and not fields[name].description] == []
