"""Chat model classes of LangChain's packages by name, for the vendors that have no class in this package.

The names, classes and inferred prefixes are those of LangChain's `init_chat_model`, which is not imported. A class is made as LangChain
makes it, and then comes behind the mixin, as `with_tools` puts it there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from ..errors import ConfigurationError
from ..mixin import ToolsAndMessagesMixin, with_tools
from ..turn.model import MISTAKEN, argument_names, unknown_argument

_SETTINGS = frozenset(ToolsAndMessagesMixin.model_fields.keys() - BaseChatModel.model_fields.keys())
"""The arguments that are the mixin's; all others are the class's own."""

_NOT_THEIRS: Mapping[str, str] = {**MISTAKEN, "retry": "requests are repeated by this class itself: see its own arguments"}


@dataclass(frozen=True)
class LangChainClass:
    """The definition of a chat model class of one of LangChain's packages.

    Attributes:
        package: Its package, as `pip install` takes it.
        extra: The extra of this package that installs it.
        module: Its module.
        class_name: Its name.
        model_argument: The argument for the model's name.
        constructor: The class method that makes the model. None: the class itself does.
        prefixes: Prefixes of model names that identify the provider.
    """

    package: str
    extra: str
    module: str
    class_name: str
    model_argument: str = "model"
    constructor: str | None = None
    prefixes: tuple[str, ...] = ()

    default_model: ClassVar[str | None] = None
    key_variables: ClassVar[tuple[str, ...]] = ()
    model_needed: ClassVar[bool] = True
    settings: ClassVar[Mapping[str, Any]] = {}

    def load(self) -> Any:
        """Return the class.

        Raises:
            ConfigurationError: Its package is not installed, or has no such class.
        """
        try:
            return getattr(import_module(self.module), self.class_name)
        except (ImportError, AttributeError) as error:
            install = f"pip install '{self.package}', or the extra `{self.extra}` (from a checkout: pip install '.[{self.extra}]')"
            raise ConfigurationError(f"{self.class_name} needs the package {self.package}: {install}. {error}") from error

    def make(self, model: str, arguments: Mapping[str, Any]) -> Any:
        """Return a model of the class that runs its tools.

        Args:
            model: The model's name.
            arguments: Settings of `ToolsAndMessagesMixin`, and arguments of the class.

        Raises:
            ConfigurationError: The package is not installed, or an argument cannot work.
        """
        cls = self.load()
        own = {name: value for name, value in arguments.items() if name in _SETTINGS}
        theirs = {name: value for name, value in arguments.items() if name not in _SETTINGS}
        _check_names(cls, theirs)
        make = getattr(cls, self.constructor) if self.constructor else cls
        try:
            made = make(**{self.model_argument: model, **theirs})
        except ValidationError as error:  # whose text has the arguments that it was given, keys among them
            raise ConfigurationError(f"{self.class_name}: {_reasons(error)}") from None
        return with_tools(made, own.pop("tools", ()), **own)


def _check_names(cls: type[BaseChatModel], names: Iterable[str]) -> None:
    """Raise if an argument of a class is meant for the mixin: many classes pass over names that they do not know.

    Raises:
        ConfigurationError: One is.
    """
    for name in set(names) - argument_names(cls):
        if name in _NOT_THEIRS:
            raise ConfigurationError(f"{cls.__name__} has no argument {name!r}: {_NOT_THEIRS[name]}")
        if get_close_matches(name, _SETTINGS, n=1, cutoff=0.85):
            raise ConfigurationError(unknown_argument(cls, name, _SETTINGS))


def _reasons(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        ": ".join([*filter(None, [".".join(map(str, one["loc"]))]), one["msg"].removeprefix("Value error, ")]) for one in details
    )


_VERTEX = "langchain-google-vertexai[anthropic]"

LANGCHAIN_CLASSES: Mapping[str, LangChainClass] = {
    "anthropic_bedrock": LangChainClass("langchain-aws[anthropic]", "aws", "langchain_aws", "ChatAnthropicBedrock"),
    "azure_ai": LangChainClass("langchain-azure-ai", "azure-ai", "langchain_azure_ai.chat_models", "AzureAIOpenAIApiChatModel"),
    "baseten": LangChainClass("langchain-baseten", "baseten", "langchain_baseten", "ChatBaseten"),
    "bedrock": LangChainClass("langchain-aws", "aws", "langchain_aws", "ChatBedrock", prefixes=("amazon.", "anthropic.", "meta.")),
    "bedrock_converse": LangChainClass("langchain-aws", "aws", "langchain_aws", "ChatBedrockConverse"),
    "bedrock_mantle_anthropic": LangChainClass("langchain-aws[anthropic]", "aws", "langchain_aws", "ChatAnthropicMantle"),
    "bedrock_mantle_openai": LangChainClass("langchain-aws[openai]", "aws", "langchain_aws", "ChatOpenAIMantle"),
    "google_anthropic_vertex": LangChainClass(_VERTEX, "google-vertexai", "langchain_google_vertexai.model_garden", "ChatAnthropicVertex"),
    "huggingface": LangChainClass(
        "langchain-huggingface", "huggingface", "langchain_huggingface", "ChatHuggingFace", "model_id", "from_model_id"
    ),
    "ibm": LangChainClass("langchain-ibm", "ibm", "langchain_ibm", "ChatWatsonx", "model_id"),
    "litellm": LangChainClass("langchain-litellm", "litellm", "langchain_litellm", "ChatLiteLLM"),
    "meta": LangChainClass("langchain-meta", "meta", "langchain_meta", "ChatMetaModel"),
    "nvidia": LangChainClass("langchain-nvidia-ai-endpoints", "nvidia", "langchain_nvidia_ai_endpoints", "ChatNVIDIA"),
    "perplexity": LangChainClass("langchain-perplexity", "perplexity", "langchain_perplexity", "ChatPerplexity", prefixes=("sonar",)),
    "upstage": LangChainClass("langchain-upstage", "upstage", "langchain_upstage", "ChatUpstage", prefixes=("solar",)),
}
"""The classes by the names of their providers; `langsmith` is `ChatOpenAI` of this package."""
