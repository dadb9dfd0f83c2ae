"""One module for each question that the benchmarks answer."""
