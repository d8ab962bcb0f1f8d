"""Side-by-side measurements of this package and its peers. `python -m benchmarks` prints a Markdown table."""
