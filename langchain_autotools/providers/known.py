"""Which providers are known by name. Reading it imports no LangChain.

A new provider is a row here and a name in the root package. The names are those of LangChain's `init_chat_model`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar


@dataclass(frozen=True)
class Provider:
    """The definition of a provider's chat model.

    Attributes:
        module: The module of its class, below `providers`.
        class_name: Its class.
        key_variables: Environment variables, one of which holds the key.
        default_model: The model that the command line takes where only the provider is named.
        prefixes: Prefixes of model names that identify the provider.
        also: Other names of the provider.
        arguments: Constructor arguments that it always gets.
        more_arguments: Returns further ones from those that are given, and from the environment.
        settings: Constructor arguments that a conversation on the screen needs.
        model_argument: The constructor's argument for the model's name.
        model_needed: Whether a model must be named.
    """

    module: str
    class_name: str
    key_variables: Sequence[str] = ()
    default_model: str | None = None
    prefixes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    more_arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    model_argument: str = "model"
    model_needed: bool = True

    def load(self) -> type[Any]:
        """Return the chat model class."""
        chat_model: type[Any] = getattr(import_module(f".{self.module}", __package__), self.class_name)
        return chat_model

    def make(self, model: str, arguments: Mapping[str, Any]) -> Any:
        """Return a model of the class.

        Args:
            model: The model's name; "" for none.
            arguments: Constructor arguments.
        """
        named = {self.model_argument: model} if model else {}
        more = self.more_arguments(arguments) if self.more_arguments else {}
        return self.load()(**{**self.arguments, **more, **named, **arguments})


_GATEWAY = "https://gateway.smith.langchain.com"
_GATEWAY_KEYS = ("LANGSMITH_GATEWAY_API_KEY", "LANGSMITH_API_KEY")


def _of_gateway(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return address and key of LangSmith's gateway where they are not given, so that no key of OpenAI's is sent there.

    Raises:
        ConfigurationError: There is no key.
    """
    found: dict[str, Any] = {}
    if not {"base_url", "openai_api_base"} & given.keys():
        address = os.environ.get("LANGSMITH_GATEWAY", "")
        is_switch = address.lower() in ("", "true", "1", "yes", "false", "0", "no")
        found["base_url"] = f"{_GATEWAY if is_switch else address.rstrip('/')}/v1"
    if not {"api_key", "openai_api_key"} & given.keys():
        found["api_key"] = next((os.environ[name] for name in _GATEWAY_KEYS if os.environ.get(name)), None)
        if found["api_key"] is None:
            from ..errors import ConfigurationError  # here, because it costs every other reader of the table LangChain

            raise ConfigurationError(f"no key for LangSmith's gateway: set {' or '.join(_GATEWAY_KEYS)}, or give api_key=...")
    return found


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "openai",
        "ChatOpenAI",
        ("OPENAI_API_KEY",),
        "gpt-5",
        prefixes=("gpt-", "o1", "o3", "o4", "chatgpt", "text-davinci"),
        settings={"stream_usage": True},
    ),
    "anthropic": Provider("anthropic", "ChatAnthropic", ("ANTHROPIC_API_KEY",), "claude-sonnet-5", prefixes=("claude",)),
    "google_genai": Provider(
        "google",
        "ChatGoogleGenerativeAI",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "gemini-3.5-flash",
        prefixes=("gemini",),  # LangChain's init_chat_model still takes Vertex AI for these and says that it will not any more
        also=("google",),
    ),
    "google_vertexai": Provider("google", "ChatGoogleGenerativeAI", default_model="gemini-3.5-flash", arguments={"vertexai": True}),
    "azure_openai": Provider("openai", "AzureChatOpenAI", ("AZURE_OPENAI_API_KEY",), "gpt-5", also=("azure",)),
    "mistralai": Provider(
        "presets.mistralai", "ChatMistralAI", ("MISTRAL_API_KEY",), "mistral-small-latest", ("mistral", "mixtral"), also=("mistral",)
    ),
    "groq": Provider("presets.groq", "ChatGroq", ("GROQ_API_KEY",), "openai/gpt-oss-120b"),
    "deepseek": Provider("presets.deepseek", "ChatDeepSeek", ("DEEPSEEK_API_KEY",), "deepseek-v4-flash", ("deepseek",)),
    "xai": Provider("presets.xai", "ChatXAI", ("XAI_API_KEY",), "grok-4", ("grok",)),
    "cohere": Provider("presets.cohere", "ChatCohere", ("COHERE_API_KEY", "CO_API_KEY"), "command-a-03-2025", ("command",)),
    "fireworks": Provider(
        "presets.fireworks", "ChatFireworks", ("FIREWORKS_API_KEY",), "accounts/fireworks/models/gpt-oss-120b", ("accounts/fireworks",)
    ),
    "together": Provider("presets.together", "ChatTogether", ("TOGETHER_API_KEY",), "openai/gpt-oss-120b"),
    "openrouter": Provider("presets.openrouter", "ChatOpenRouter", ("OPENROUTER_API_KEY",), "openrouter/auto"),
    "langsmith": Provider("openai", "ChatOpenAI", _GATEWAY_KEYS, arguments={"use_responses_api": True}, more_arguments=_of_gateway),
    "ollama": Provider("ollama", "ChatOllama", default_model="qwen3"),
    "local": Provider("local", "ChatLocal", model_argument="model_path", model_needed=False),
}


# ---------------------------------------------------------------------------------------------- classes of LangChain's packages
#
# Those of the vendors that have no class in this package. The names, classes and inferred prefixes are those of LangChain's
# `init_chat_model`, which is not imported.


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

    def make(self, model: str, arguments: Mapping[str, Any]) -> Any:
        """Return a model of the class that runs its tools.

        Args:
            model: The model's name.
            arguments: Settings of `ToolsAndMessagesMixin`, and arguments of the class.

        Raises:
            ConfigurationError: The package is not installed, or an argument cannot work.
        """
        return import_module(".langchain_classes", __package__).make_model(self, model, arguments)


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
