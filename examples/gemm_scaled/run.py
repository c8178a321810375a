"""A product of 8-bit matrices with scales of rows and columns: compiled, run on a GPU or in the simulator, checked, timed.

python examples/gemm_scaled/run.py --shape 300,277,208
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    sizes = dict.fromkeys("MNK", 8192)
    main(__file__, __doc__, shape={"M": 300, "N": 277, "K": 208}, large=sizes, dtypes=("e4m3", "e5m2"))
