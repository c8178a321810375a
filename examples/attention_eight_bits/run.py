"""Attention of 8-bit queries, keys and values with scales: compiled, run on a GPU or in the simulator, checked, timed.

python examples/attention_eight_bits/run.py --causal --shape 1,300,272,2,4,128,128
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    shape = {"B": 1, "M": 300, "N": 272, "G": 2, "R": 2, "D": 128, "E": 128}
    large = {"B": 2, "M": 8192, "N": 8192, "G": 8}
    main(__file__, __doc__, shape=shape, large=large, fixed="DE", causal=True, dtypes=("e4m3",))
