"""One softmax over two tensors of values: compiled, run on a GPU or in the simulator, checked, timed.

python examples/two_values/run.py --shape 1,300,257,2,64,64,32 --causal
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    main(
        __file__,
        __doc__,
        shape={"B": 1, "M": 300, "N": 257, "H": 2, "D": 64, "E": 64, "F": 32},
        large={"B": 4, "M": 4096, "N": 4096, "H": 16},
        fixed="DEF",
        causal=True,
    )
