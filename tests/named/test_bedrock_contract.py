"""The contract's behaviours, as every wire of this package has them, over Bedrock's two wires."""

import pytest

from tests.contract import test_control, test_histories, test_output, test_same_bytes, test_schemas, test_streams, test_thinking, test_tools
from tests.named.bedrock import ROWS

pytestmark = pytest.mark.parametrize("row", ROWS)

_MODULES = (test_control, test_histories, test_output, test_same_bytes, test_schemas, test_streams, test_thinking, test_tools)
for _module in _MODULES:
    globals().update({name: test for name, test in vars(_module).items() if name.startswith("test_")})
