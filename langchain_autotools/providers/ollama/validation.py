"""The check that the server has a model, for `validate_model_on_init`."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx


def check_model(http: "httpx.Client", url: str, model: str, options: Mapping[str, Any]) -> None:
    """Raise if the server does not have the model.

    Args:
        http: The HTTP client.
        url: The server's address.
        model: The model's name.
        options: Headers and timeout of the request.

    Raises:
        ValueError: The server has no such model, or cannot be asked; the text says what to do.
    """
    import httpx

    try:
        listed = http.get(f"{url}/api/tags", **options).raise_for_status().json()
        names = [str(one.get("model") or one.get("name")) for one in listed["models"]]
    except httpx.TransportError as error:
        raise ValueError(f"no reply from {url} ({type(error).__name__}): is Ollama running there?") from error
    except (httpx.HTTPError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{url} does not tell which models it has ({type(error).__name__}): is it an Ollama server?") from error
    if not any(name == model or name.startswith(f"{model}:") for name in names):
        near = get_close_matches(model, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names) or 'none'}"
        raise ValueError(f"the server has no model {model!r}: {hint} (ollama pull {model} fetches it)")
