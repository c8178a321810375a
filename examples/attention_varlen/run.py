"""Attention over packed sequences: compiled, run on a GPU or in the simulator, checked, timed.

python examples/attention_varlen/run.py --causal --shape 8,1000,1000,300,300,1,4,128,128
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    main(
        __file__,
        __doc__,
        shape={"B": 5, "RowsQ": 300, "RowsK": 400, "LongestQ": 300, "LongestK": 400, "G": 1, "R": 2, "D": 128, "E": 128},
        large={"B": 16, "RowsQ": 16384, "RowsK": 16384, "LongestQ": 4096, "LongestK": 4096, "G": 16, "R": 1},
        fixed="DE",
        causal=True,
    )
