"""Every argument of a chat model says what it means, where editors and reference generators look: in the docstring under its field."""

import ast
import inspect
import textwrap

import pytest

import langchain_autotools
from langchain_autotools import ToolsAndMessagesMixin
from langchain_autotools.testing import ScriptedChatModel

CLASSES = [getattr(langchain_autotools, name) for name in langchain_autotools.__all__ if "Chat" in name]
MODELS = [cls for cls in (*CLASSES, ScriptedChatModel) if isinstance(cls, type) and issubclass(cls, ToolsAndMessagesMixin)]
OWN = sorted(
    {base for model in MODELS for base in model.__mro__ if base.__module__.startswith("langchain_autotools")}, key=lambda c: c.__qualname__
)


def undescribed(cls: type) -> list[str]:
    """The public fields that a class declares without a docstring."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(node, ast.ClassDef)
    described = {
        one.target.id
        for one, after in zip(node.body, node.body[1:], strict=False)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(after, ast.Expr)
    }
    fields = getattr(cls, "model_fields", {})
    return [name for name in inspect.get_annotations(cls) if name in fields and name not in described]


@pytest.mark.parametrize("cls", OWN, ids=lambda cls: cls.__qualname__)
def test_every_argument_is_described(cls: type) -> None:
    """No field that a user can set goes without a description; what LangChain declares, LangChain describes."""
    assert undescribed(cls) == []
