"""Benchmarks of lit_bump; run with ``python -m benchmarks``."""
