"""Types of fields whose constructor accepts more types than they hold: a key may be given as text and is held as a `SecretStr`."""

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from pydantic import SecretStr

Held = TypeVar("Held")
Given = TypeVar("Given")

if TYPE_CHECKING:

    class Converted(Generic[Held, Given]):
        """A field for type checkers, which use a descriptor's `__set__` as the constructor's parameter type."""

        @overload
        def __get__(self, instance: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> Held: ...
        def __get__(self, instance: object, owner: Any) -> Any: ...
        def __set__(self, instance: object, value: Given) -> None: ...

    Secret = Converted[SecretStr | None, SecretStr | str | None]
else:
    Secret = SecretStr | None
