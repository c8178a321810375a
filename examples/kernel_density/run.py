"""A sum of bells around many points: compiled, run on a GPU or in the simulator, checked, timed.

python examples/kernel_density/run.py --shape 300,277,64
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    main(__file__, __doc__, shape={"M": 300, "N": 277, "K": 64}, large={"M": 8192, "N": 32768}, fixed="K")
