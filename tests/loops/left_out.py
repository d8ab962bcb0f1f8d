"""The recorded loops that are not replayed, by their ids, with the reason. One that could be replayed fails the tests."""

LEFT_OUT: dict[str, str] = {}
