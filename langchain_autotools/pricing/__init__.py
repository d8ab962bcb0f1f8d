"""Prices: what a reply is billed for, what each kind of usage costs, and the check of a run's budget."""
