"""What a model shows of itself holds no secret, whatever class it is of and wherever the secret was given."""

import pickle
import traceback
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumps

from langchain_autotools import ProviderError
from tests.contract.wires import ROWS, Wire
from tests.support.script import Turn

KEY, HEADER, PASSWORD = "sk-key-1234567890", "header-1234567890", "password-1234567890"


def secretive(row: Wire) -> dict[str, Any]:
    """Arguments with a secret wherever the class takes one."""
    fields, proxy = row.chat_model.model_fields, f"http://user:{PASSWORD}@127.0.0.1:1"
    headers = next((name for name in ("default_headers", "additional_headers") if name in fields), None)
    proxies = next((name for name in ("openai_proxy", "anthropic_proxy") if name in fields), None)
    own = "client_args" if "client_args" in fields else "client_kwargs"
    given: dict[str, Any] = {"api_key": KEY}
    given |= (
        {headers: {"Helicone-Auth": HEADER, "x-title": "blue"}} if headers else {"client_kwargs": {"headers": {"Helicone-Auth": HEADER}}}
    )
    return given | ({proxies: proxy} if proxies else {own: {**given.get(own, {}), "proxy": proxy}})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_model_shows_no_secret(row: Wire) -> None:
    """Its repr, its JSON, what LangChain writes of it, why it cannot be pickled; headers that are no secret are shown in the JSON."""
    with row.serve([]) as server:
        model = row.model(server, **secretive(row))
    with pytest.raises(pickle.PicklingError, match="Helicone-Auth") as refused:
        pickle.dumps(model)
    shown = [repr(model), str(model), model.model_dump_json(), dumps(model), str(refused.value)]
    shown += [str(model._identifying_params), repr(model.bind(stop=["."]))]
    for text in shown:
        assert not [secret for secret in (KEY, HEADER, PASSWORD) if secret in text]
    if "default_headers" in row.chat_model.model_fields:
        assert '"x-title":"blue"' in model.model_dump_json()
        assert model.model_dump()["default_headers"]["Helicone-Auth"] == HEADER  # as of any pydantic model: these are the values


class Told(BaseCallbackHandler):
    """Keeps what a handler is told of a request."""

    def __init__(self) -> None:
        self.said = ""

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        """Keep it."""
        self.said += f"{serialized} {messages} {kwargs}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_calls_own_headers_stay_out_of_traces_and_caches(row: Wire) -> None:
    """The cache keeps replies to different tokens apart all the same."""
    told = Told()
    with row.serve([Turn("Hi.")]) as server:
        model = row.model(server)
        model.invoke("Hi", {"callbacks": [told]}, extra_headers={"Helicone-Auth": HEADER, "x-title": "blue"})
        assert server.exchanges[0].headers["helicone-auth"] == HEADER
    assert HEADER not in told.said and "blue" in told.said
    one, other = (model._get_llm_string(extra_headers={"Helicone-Auth": token}) for token in (HEADER, f"{HEADER}-2"))
    assert HEADER not in one and one != other


@pytest.mark.parametrize("row", [row for row in ROWS if "azure" not in row.name], ids=lambda row: row.name)
def test_an_address_is_shown_without_its_user(row: Wire) -> None:
    """A gateway's user and password may be in its address."""
    with row.serve([]) as server:
        model = row.model(server, base_url=f"http://user:{PASSWORD}@127.0.0.1:1/v1")
    assert PASSWORD not in repr(model) + model.model_dump_json() + str(model.model_dump()) + str(model._identifying_params) + dumps(model)


@pytest.mark.parametrize("row", [row for row in ROWS if "azure" not in row.name], ids=lambda row: row.name)
def test_an_address_is_shown_without_its_key(row: Wire) -> None:
    """A gateway's key may be in its query; what else is there is shown."""
    with row.serve([]) as server:
        model = row.model(server, base_url=f"http://127.0.0.1:1/v1?version=blue&key={PASSWORD}&access_token={HEADER}")
    with pytest.raises(pickle.PicklingError, match="base_url|api_base|api_url") as refused:
        pickle.dumps(model)
    for text in (repr(model), model.model_dump_json(), str(model.model_dump()), dumps(model), str(refused.value)):
        assert not [secret for secret in (PASSWORD, HEADER) if secret in text]
    assert "?version=blue&key=***&access_token=***" in model.model_dump_json()


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in ("openai-chat", "anthropic", "google")], ids=lambda row: row.name)
def test_a_key_in_an_address_is_found_again_and_not_repeated(row: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unpickled model takes it from the environment, as a password; an error that repeats it is shown without."""
    address = f"http://127.0.0.1:1/v1?version=blue&key={PASSWORD}"
    with row.serve([]) as server:
        model = row.model(server, base_url=address, max_retries=0)
    variable = {"openai-chat": "OPENAI_API_BASE", "anthropic": "ANTHROPIC_BASE_URL", "google": "GOOGLE_GEMINI_BASE_URL"}[row.name]
    monkeypatch.setenv(variable, address)
    pickled = pickle.dumps(model)
    assert b"?version=blue" in pickled and PASSWORD.encode() not in pickled
    assert PASSWORD in getattr(pickle.loads(pickled), model._url_field)
    with pytest.raises(ProviderError) as caught:
        model.invoke("Hi")
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
