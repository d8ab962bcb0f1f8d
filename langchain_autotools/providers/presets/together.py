"""`ChatTogether`: the models that Together serves, with tools that run."""

from typing import ClassVar

from .._base.parameters import Environment
from ..openai.dialect import Dialect
from ..openai.preset import Preset, PresetChatModel

_PARAMETERS = "chat_template_kwargs compliance context_length_exceeded_behavior echo min_p repetition_penalty safety_model top_k"


class ChatTogether(PresetChatModel):
    """The chat models that Together serves, with tools that run.

    ```python
    model = ChatTogether(model="openai/gpt-oss-120b", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `TOGETHER_API_KEY` of the environment.
    - `base_url`: address of another server.
    - `temperature`, `max_tokens`, `stop`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    Constructor names are those of langchain-together's `ChatTogether`.

    Raises:
        ConfigurationError: An argument is unknown or cannot work; or, at the first request, there is no key.
    """

    preset: ClassVar[Preset] = Preset(
        dialect=Dialect(provider="together"),
        base_url="https://api.together.xyz/v1",
        environment=Environment(key=("TOGETHER_API_KEY",), base_url=("TOGETHER_API_BASE",)),
        arguments={"together_api_key": "openai_api_key", "together_api_base": "openai_api_base"},
        fields={"reasoning": "reasoning"},
        parameters=frozenset(_PARAMETERS.split()),
        renamed={"max_completion_tokens": "max_tokens"},
    )
