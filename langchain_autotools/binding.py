"""A chat model with keywords bound to it: LangChain's `RunnableBinding`, which knows `resume` too."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableBinding, RunnableConfig

from .constructor import tool_labels
from .loop import Decision, decided

__all__ = ["BoundChatModel"]


class BoundChatModel(RunnableBinding[LanguageModelInput, AIMessage]):  # type: ignore[no-redef, unused-ignore]
    """A model with tools or other keywords bound to it.

    LangChain's own binding hands methods that it does not know to the model, without what was bound: a `resume` would run calls of
    tools that were declared to be asked about.
    """

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        kwargs = self.bound._public(self.kwargs)  # type: ignore[attr-defined]
        if kwargs.get("tools"):
            kwargs["tools"] = tool_labels(kwargs["tools"])
        yield from {"bound": self.bound, "kwargs": kwargs, **({"config": self.config} if self.config else {})}.items()

    @classmethod
    def lc_id(cls) -> list[str]:
        """As LangChain's own, which it is when it is read back."""
        return RunnableBinding.lc_id()

    @classmethod
    def of(cls, binding: Any) -> Any:
        """The same binding as one of these."""
        return cls(**{name: getattr(binding, name) for name in RunnableBinding.model_fields if name != "name"})

    def resume(
        self,
        history: LanguageModelInput,
        decisions: Mapping[str, Decision] | Literal[True] = True,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """As of the model, with what is bound."""
        return self.invoke(history, config, resume=decided(decisions), **kwargs)

    async def aresume(
        self,
        history: LanguageModelInput,
        decisions: Mapping[str, Decision] | Literal[True] = True,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Like `resume`, asynchronously."""
        return await self.ainvoke(history, config, resume=decided(decisions), **kwargs)
