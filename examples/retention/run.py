"""Linear attention with a decay: compiled, run on a GPU or in the simulator, checked, timed.

python examples/retention/run.py --shape 1,300,2,64,64
"""

from wgdsl.tools.example import main

if __name__ == "__main__":
    main(__file__, __doc__, shape={"B": 1, "N": 300, "H": 2, "D": 64, "E": 64}, large={"B": 4, "N": 4096, "H": 16}, fixed="DE")
