"""A product with the maximum and the sum of squares of its rows: compiled, run on a GPU or in the simulator, checked, timed.

python examples/gemm_statistics/run.py --shape 300,277,200
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    main(__file__, __doc__, shape={"M": 300, "N": 277, "K": 200}, large={"M": 8192, "N": 8192, "K": 8192})
