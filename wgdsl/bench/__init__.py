"""`wgdsl bench`: the kernels of this project beside those of others, on the same inputs in one run."""
