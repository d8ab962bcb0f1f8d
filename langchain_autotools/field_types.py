"""Types of fields whose constructor takes more than they hold: a key may be given as text and is held as a `SecretStr`."""

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from pydantic import SecretStr

Held = TypeVar("Held")
Given = TypeVar("Given")

if TYPE_CHECKING:

    class Converted(Generic[Held, Given]):
        """A field as type checkers see it: they take a descriptor's `__set__` for what a constructor takes."""

        @overload
        def __get__(self, instance: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> Held: ...
        def __get__(self, instance: object, owner: Any) -> Any: ...
        def __set__(self, instance: object, value: Given) -> None: ...

    Secret = Converted[SecretStr | None, SecretStr | str | None]
else:
    Secret = SecretStr | None
