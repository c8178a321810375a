"""Attention with a bias for each score, which a schedule copies to shared memory: compiled, run on a GPU or in the simulator,
checked, timed.

python examples/attention_bias/run.py --shape 1,300,264,2,64,64 --causal
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    main(
        __file__,
        __doc__,
        shape={"B": 1, "M": 300, "N": 264, "H": 2, "D": 64, "E": 64},
        large={"B": 4, "M": 4096, "N": 4096, "H": 16},
        fixed="DE",
        causal=True,
    )
