"""Why a mutant may live: by what `Mutant.key` says of it."""

REASONS: dict[str, str] = {}
