"""`ChatLocal`: a real model on this machine, without a key, whose server lives from its first use to the program's end."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from langchain_core.language_models import ModelProfile
from langchain_core.language_models.base import LangSmithParams
from pydantic import Field, SecretStr, model_validator

from ...errors import ConfigurationError
from .._base.parameters import Environment
from .._transport.clients import SHARED_POOLS, http_library
from .._transport.exchange import Exchange, Response
from ..openai.chat_model import ChatOpenAI
from ..openai.parameters import ClientSettings
from .server import LocalServer, ServerSettings, close_server, require_server, shared_server
from .weights import DEFAULT_MODEL, MODEL_PATH_VARIABLE, Progress, Weights, find_weights

CHAT_TEMPLATE = Path(__file__).with_name("qwen_coder_tools.jinja")
"""The chat template for the default weights, which call no tools with their own."""

_MOST_THREADS = 8  # more do not make a model of this size faster
_SERVERS_OWN = (
    "openai_api_key api_key openai_api_base base_url openai_organization organization openai_proxy http_client http_async_client "
    "default_headers default_query"
)


class ChatLocal(ChatOpenAI):
    """A model that runs on this machine, with tools that run.

    ```python
    model = ChatLocal(tools=[get_temperature])
    print(model.invoke("How warm is it in Paris and in Rome?").text)
    ```

    The arguments that matter first, all optional:

    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `model_path`: a GGUF file in place of the default model.
    - `context_size`, `threads`, `gpu_layers`: what it may use of the machine.
    - `temperature`, `max_tokens`, `stop`: of each reply.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The first request finds the weights (see `find_weights`: 491 MB, once) and starts the server; all models of a process share
    it, and it stops with the program. The default model is very small: it manages one tool, or the same tool for two things at
    once, and not much more. Needs the extra `local`.

    Besides its own, it takes the arguments of `ChatOpenAI` that do not concern another server.

    Raises:
        ConfigurationError: An argument is unknown or cannot work; or, at the first request, something is not installed, there
            are no weights, or the process already runs a model with other settings.
        LocalServerError: (at the first request) The server did not start.
    """

    model_name: str = Field(default="", alias="model")
    """Model name. Default: that of the weights."""
    model_path: str | Path | None = None
    """A GGUF file to run in place of the default weights. Environment: `LANGCHAIN_AUTOTOOLS_MODEL_PATH`."""
    chat_template: str | Path | None = Field(default=None, repr=False)
    """The Jinja chat template: its text, or its file. Default: this package's own for the default weights, else the file's own."""
    context_size: int = Field(default=8192, ge=256)
    """Context length in tokens, the reply included."""
    threads: int | None = Field(default=None, ge=1)
    """Number of CPU threads. Default: the processors this process may use, at most 8."""
    gpu_layers: int = Field(default=0, ge=0)
    """Number of layers on a GPU, if the installed server supports one."""
    start_timeout: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    """Timeout in seconds for the start of the server."""
    use_responses_api: bool | None = False
    """Must be False: this server has no Responses API."""
    show_progress: bool = True
    """Whether to show the progress of fetching or joining weights on standard error."""

    temperature: float | None = 0.0
    """Sampling temperature. 0: small models call tools less reliably above it."""
    max_tokens: int | None = Field(default=512, validation_alias="max_completion_tokens")
    """Maximum number of tokens of one reply."""
    max_retries: int | None = 0
    """Maximum number of retries of a failed request. 0: this server would fail in the same way again."""

    _environment: ClassVar[Environment] = Environment()
    _refused: ClassVar[Mapping[str, str]] = {
        **ChatOpenAI._refused,
        **dict.fromkeys(_SERVERS_OWN.split(), "the server is this program's own; for another one use ChatOpenAI(base_url=...)"),
    }

    @classmethod
    def _argument_names(cls) -> frozenset[str]:
        return super()._argument_names() - set(_SERVERS_OWN.split())

    @model_validator(mode="before")
    @classmethod
    def _name_after_the_file(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("model") or values.get("model_name"):
            return values
        path = values.get("model_path") or os.environ.get(MODEL_PATH_VARIABLE)
        others = {name: value for name, value in values.items() if name != "model"}
        return {**others, "model_name": Path(path).stem if isinstance(path, str | Path) and path else DEFAULT_MODEL.name}

    @model_validator(mode="after")
    def _forget_the_environment(self) -> Self:
        """Ignore the vendor's keys and addresses in the environment."""
        self.openai_api_base = self.openai_organization = None
        if self.stream_usage is None:
            self.stream_usage = True
        return self

    # ------------------------------------------------------------------------------------------ the server

    def start(self) -> LocalServer:
        """Find the weights and start the server now, unless it runs already, rather than at the first request.

        Returns:
            The server; its `base_url` and `api_key` let any other client of OpenAI's wire use it too.
        """
        return self._server()

    def close(self) -> None:
        """Stop this process's server, whichever model started it. The next request starts a new one."""
        close_server()

    def _server(self) -> LocalServer:
        require_server()
        weights = find_weights(self.model_path, Progress(self.show_progress))
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        settings = ServerSettings(
            model_path=str(weights.path),
            model_name=self.model_name,
            chat_template=self._template(weights),
            context_size=self.context_size,
            threads=self.threads or min(usable or 1, _MOST_THREADS),
            repeat_penalty=DEFAULT_MODEL.repeat_penalty if weights.is_default else 1.0,
            gpu_layers=self.gpu_layers,
        )
        return shared_server(settings, self.start_timeout)

    def _template(self, weights: Weights) -> str | None:
        template = self.chat_template
        if template is None:
            return CHAT_TEMPLATE.read_text(encoding="utf-8") if weights.is_default else None
        if isinstance(template, str) and "{" in template:
            return template
        try:
            return Path(template).expanduser().read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"chat_template: {template} cannot be read: {error.strerror or error}") from error

    def _settings(self, server: LocalServer, **clients: Any) -> ClientSettings:
        return ClientSettings(api_key=SecretStr(server.api_key), base_url=server.base_url, foreign=True, **clients)

    def _client_settings(self) -> ClientSettings:
        return self._settings(self._server(), http_client=SHARED_POOLS.get("local", lambda: _direct("DefaultHttpxClient")))

    async def _aopen(self, exchange: Exchange) -> Response:
        server = await asyncio.to_thread(self._server)  # it may have to start
        loop = asyncio.get_running_loop()
        http_client = SHARED_POOLS.get("local", lambda: _direct("DefaultAsyncHttpxClient"), loop)
        return await self._settings(server, http_async_client=http_client).apost(exchange, self._cache)

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "local-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("model_path", "chat_template", "context_size")}
        return {**super()._identifying_params, **{name: str(value) for name, value in own.items() if value is not None}}

    @property
    def lc_secrets(self) -> dict[str, str]:
        """An empty dict: the server's key is valid only while the server runs."""
        return {}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop, **kwargs)
        params["ls_provider"] = "local"
        return params

    def _resolve_model_profile(self) -> ModelProfile | None:
        # The reply needs its room too: a context that leaves less cannot go on.
        room = self.context_size - min(self.max_tokens or 0, self.context_size // 2)
        return cast(
            "ModelProfile",
            {
                "max_input_tokens": room,
                **dict.fromkeys(("text_inputs", "text_outputs", "tool_calling", "structured_output", "temperature"), True),
                **dict.fromkeys(("image_inputs", "audio_inputs"), False),
            },
        )


def _direct(class_name: str) -> Any:
    """Create an HTTP client without proxies, certificates and idle connections."""
    import openai

    limits = http_library(openai).Limits(max_keepalive_connections=0)
    return getattr(openai, class_name)(trust_env=False, verify=False, limits=limits)
