"""A machine that knows the vendors' types: what becomes of every leaf of a reply that the SDKs' type definitions name."""
