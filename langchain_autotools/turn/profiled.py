"""The profile of a chat model, which core looks up by the model's name, in copies and in models made of another model's fields."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from pydantic import model_validator

from ..compat import CACHE_KEY


class _LookedUpProfile(dict[str, Any]):
    """A profile that was looked up by the model's name, not given by the user."""


class ProfiledChatModel(BaseChatModel):
    """A chat model whose profile follows its name."""

    @model_validator(mode="before")
    @classmethod
    def _forget_profile(cls, values: Any) -> Any:
        """Discard the profile of a model that LangChain creates from another model's fields (`configurable_fields`)."""
        if isinstance(values, Mapping) and isinstance(values.get("profile"), _LookedUpProfile):
            return {name: value for name, value in values.items() if name != "profile"}
        return values

    @model_validator(mode="after")
    def _mark_profile(self) -> Self:
        found = self._looked_up_profile()
        if found is not None and self.profile == found:
            self.__dict__["profile"] = found
        return self

    def _looked_up_profile(self) -> _LookedUpProfile | None:
        with suppress(Exception):  # as core looks it up
            found = self._resolve_model_profile()
            return None if found is None else _LookedUpProfile(found)
        return None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy without the state derived from this model's fields: core's cache key, and a looked-up profile."""
        copy = super().model_copy(update=update, deep=deep)
        copy.__dict__.pop(CACHE_KEY, None)
        if update and "profile" not in update and isinstance(self.profile, _LookedUpProfile):
            copy.__dict__["profile"] = copy._looked_up_profile()
        return copy
