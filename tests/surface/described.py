"""What a model says of itself: names, parameters, profile, tokens, what its copies, pickles and dumps hold."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langchain_core.load import dumps
from langchain_core.messages import HumanMessage
from langchain_core.runnables import ConfigurableField

from tests.surface.observed import Seen, flat, plain
from tests.surface.pairs import Stage
from tests.surface.replied import outcome

_FACTS: Mapping[str, Callable[[Any], Seen]] = {
    "_llm_type": lambda model: {"": model._llm_type},
    "_identifying_params": lambda model: flat(dict(model._identifying_params)),
    "_get_ls_params": lambda model: flat(dict(model._get_ls_params(stop=["x"], temperature=0.25))),
    "lc_secrets": lambda model: flat(model.lc_secrets),
    "lc_attributes": lambda model: flat(model.lc_attributes),
    "lc_id": lambda model: {"": ".".join(model.lc_id())},
    "get_lc_namespace": lambda model: {"": ".".join(model.get_lc_namespace())},
    "is_lc_serializable": lambda model: {"": plain(model.is_lc_serializable())},
    "get_name": lambda model: {"": model.get_name()},
    "dict": lambda model: flat(model.asdict() if hasattr(model, "asdict") else model.dict()),
    "model_dump": lambda model: {name: "there" for name in model.model_dump()},
    "dumps": lambda model: {"": json.loads(dumps(model)).get("type", "")},
    "repr": lambda model: {"shows the key": plain("key'" in repr(model).replace("SecretStr", ""))},
    "profile": lambda model: flat(dict(model.profile or {})),
    "get_num_tokens": lambda model: {"": plain(type(model.get_num_tokens("Hello there.")))},
    "get_token_ids": lambda model: {"": plain(type(model.get_token_ids("Hello there.")))},
    "get_num_tokens_from_messages": lambda model: {"": plain(type(model.get_num_tokens_from_messages([HumanMessage("Hello.")])))},
    "InputType": lambda model: {"": str(model.InputType)},
    "OutputType": lambda model: {"": str(model.OutputType)},
    "config_specs": lambda model: {"": " ".join(sorted(spec.id for spec in model.config_specs))},
    "input schema": lambda model: {"": str(model.get_input_jsonschema().get("title"))},
    "output schema": lambda model: {"": str(model.get_output_jsonschema().get("title"))},
    "graph": lambda model: {"": " ".join(node.name for node in model.get_graph().nodes.values())},
    "pickle": lambda model: {"equal": plain(pickle.loads(pickle.dumps(model)) == model)},
    "equal": lambda model: {"copy": plain(model.model_copy() == model)},
    "bind": lambda model: {"": type(model.bind(stop=["x"])).__name__},
    "bind_tools": lambda model: {"": type(model.bind_tools([])).__name__},
    "with_config": lambda model: {"": type(model.with_config({"tags": ["a"]})).__name__},
    "configurable_fields": lambda model: {"": type(model.configurable_fields(temperature=ConfigurableField("warm"))).__name__},
    "with_structured_output": lambda model: {
        "": type(model.with_structured_output({"title": "A", "type": "object", "properties": {}})).__name__
    },
}


def facts(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """Each fact."""
    model = stage.pair.make(stage.side, temperature=0.5)
    for name, see in _FACTS.items():
        yield name, "", outcome(lambda: see(model), lambda seen: seen)  # noqa: B023 - called at once
