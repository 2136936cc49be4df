"""Benchmarks: each figure beside a bound that was measured in the same run. Never part of a test."""
