"""Attention on one tensor of queries, keys and values: compiled, run on a GPU or in the simulator, checked, timed.

python examples/attention_packed/run.py --causal --shape 2,1000,4,64
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    main(
        __file__,
        __doc__,
        shape={"B": 1, "M": 300, "H": 2, "D": 128},
        large={"B": 4, "M": 4096, "H": 16},
        fixed="D",
        causal=True,
    )
