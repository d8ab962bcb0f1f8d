"""The signature of a chat model's constructor: complete for programs, short and ordered by importance for people."""

from inspect import Parameter, Signature
from typing import Any, Final

from ...turn.constructor import names_of

_FIRST: Final = ("model", "tools")
_SHOWN: Final = 48  # characters of names that `help` shows


class ConstructorSignature(Signature):
    """A signature with all parameters whose text, the heading of `help`, shows only the first ones."""

    def __str__(self) -> str:
        shown = ""
        for name in self.parameters:
            if len(shown) + len(name) > _SHOWN:
                break
            shown += f"{name}, "
        return f"(*, {shown}...)"

    def format(self, **options: Any) -> str:
        """Return the short text; `help` of newer Python versions calls this method."""
        return str(self)


class LazySignature:
    """A class's signature, derived from pydantic's on first access.

    Args:
        made: Pydantic's signature attribute of the class, a descriptor.
    """

    def __init__(self, made: Any) -> None:
        self._made = made

    def __get__(self, instance: object, owner: type[Any]) -> Signature:
        whole: Signature = self._made.__get__(instance, owner)
        return _ordered(owner, whole)


def _ordered(model: type[Any], signature: Signature) -> Signature:
    """Return the parameters under their public names: model and tools, then the class's own, then the inherited ones."""
    known = {name: field for field in model.model_fields for name in names_of(model, field)}
    own = [one for one in signature.parameters.values() if one.kind is Parameter.KEYWORD_ONLY and one.name in known]
    named = [(known[one.name], one.replace(name=names_of(model, known[one.name])[0])) for one in own]
    bases = [getattr(base, "model_fields", {}) for base in model.__mro__]

    def place(pair: tuple[str, Parameter]) -> tuple[int, int]:
        field, parameter = pair
        first = _FIRST.index(parameter.name) if parameter.name in _FIRST else len(_FIRST)
        return first, sum(field in base for base in bases)

    return ConstructorSignature([parameter for _, parameter in sorted(named, key=place)])
