"""Measurements, each runnable with one command: ``python -m benchmarks.NAME``."""
