"""Beside the compiler: benchmarks, tuning, timelines, the record of GPU runs."""
