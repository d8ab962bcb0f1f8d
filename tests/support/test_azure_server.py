"""What Azure's loopback servers refuse that no class of ours sends."""

import http.client
import json

import pytest

from tests.support.azure_server import KEY, VERSION, AzureResponsesServer, AzureServer
from tests.support.script import Turn

CHAT = "/openai/deployments/mine/chat/completions"
VERSIONED = f"?api-version={VERSION}"


@pytest.mark.parametrize(
    ("serve", "method", "path", "headers", "expected"),
    [
        (AzureServer, "POST", CHAT, {"api-key": KEY}, (404, "404")),
        (AzureServer, "POST", f"/openai/v1/chat/completions{VERSIONED}", {"api-key": KEY}, (404, "404")),
        (AzureServer, "GET", CHAT + VERSIONED, {"api-key": KEY}, (404, "404")),
        (AzureServer, "POST", CHAT + VERSIONED, {}, (401, "401")),
        (AzureServer, "POST", CHAT + VERSIONED, {"authorization": f"Bearer {KEY}"}, (401, "401")),
        (AzureResponsesServer, "POST", "/openai/responses", {"api-key": KEY}, (404, "404")),
        (AzureResponsesServer, "POST", f"/openai/deployments/mine/responses{VERSIONED}", {"api-key": KEY}, (404, "404")),
        (AzureResponsesServer, "POST", f"/openai/responses{VERSIONED}", {}, (401, "401")),
    ],
)
def test_what_stands_before_the_models_refuses(
    serve: type[AzureServer], method: str, path: str, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    """No version, another path or method, no key, a key in the place of a token: a code and a message, and no reply used up."""
    with serve([Turn("Never.")]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request(method, path, b"{}", {"content-type": "application/json", **headers})
        with connection.getresponse() as response:
            error = json.loads(response.read())["error"]
        connection.close()
        assert (response.status, error["code"]) == expected
        assert (sorted(error), server.left, len(server.rejections)) == (["code", "message"], 1, 1)
