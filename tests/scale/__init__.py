"""Runs on Dask and Ray, with a worker killed: `pytest -m scale tests/scale`, or `python -m tests.scale dask 10000` for figures."""
