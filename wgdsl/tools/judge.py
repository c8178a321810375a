"""Is a result right? The bar of the project, worked out for the very inputs.

In: a kernel's program, its inputs, and what came out.  Out: for each output its largest error and the bar.

Outputs of 16 and 8 bits: at most twice the error of NumPy rounding the operands of products and the result, with what the
schedule approximates as far off as it may be and products of 8 bits summed up as the matrix engine does, and 1e-5 of the
largest value. f32 outputs: 1e-4 and 2e-6 of the value, or that bar if it is larger. Infinities and NaN stand where float64 has
them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..program.graph import ProgramGraph
from ..reference.evaluate import evaluate


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One output. `error` is the largest one relative to what each element is allowed, times `bar`: right if at most `bar`."""

    output: str
    error: float
    bar: float
    largest: float
    elements: int

    @property
    def right(self) -> bool:
        return self.error <= self.bar

    def __str__(self) -> str:
        state = "right" if self.right else "WRONG"
        size = f"largest value {self.largest:.3g}, {self.elements} elements"
        return f"{self.output}: {state}, error {self.error:.3g}, bar {self.bar:.3g} ({size})"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a program makes of some inputs: in float64, and rounded as a right kernel may round."""

    graph: ProgramGraph
    exact: Mapping[str, np.ndarray]
    rounded: Mapping[str, np.ndarray]

    def verdicts(self, results: Mapping[str, Any]) -> list[Verdict]:
        """One for each output of `results`, NumPy arrays by name."""
        nodes = {n.tensor: n for n in self.graph.outputs}
        rows = ((n, nodes[n].dtype.bits >= 32, self.exact[n], self.rounded[n], got) for n, got in results.items())
        return [_verdict(n, wide, exact, rounded, np.asarray(got)) for n, wide, exact, rounded, got in rows]


def judge(
    graph: ProgramGraph,
    inputs: Mapping[str, np.ndarray],
    scalars: Mapping[str, float],
    dims: Mapping[str, int],
    results: Mapping[str, Any],
    approximated: Collection[str] = (),
) -> list[Verdict]:
    """A verdict for each output of `results`, NumPy arrays by name; the rest as for `expected`."""
    return expected(graph, inputs, scalars, dims, approximated).verdicts(results)


def expected(
    graph: ProgramGraph,
    inputs: Mapping[str, np.ndarray],
    scalars: Mapping[str, float],
    dims: Mapping[str, int],
    approximated: Collection[str] = (),
) -> Expected:
    """What every kernel of a program has to make of these inputs. inputs: with what the outputs held before, if the program
    leaves elements of them as they are. approximated: functions for which the kernel takes what the chip has in their place."""
    free = {name: dims[name] for name in graph.dims if name in dims}
    exact = evaluate(graph, inputs, scalars, free)
    near = evaluate(graph, inputs, scalars, free, round_operands=True, approximated=approximated)
    return Expected(graph=graph, exact=exact, rounded=near)


def _verdict(name: str, wide: bool, exact: np.ndarray, rounded: np.ndarray, got: np.ndarray) -> Verdict:
    got = got.astype(np.float64)
    if got.shape != exact.shape:
        raise ValueError(f"{name} has shape {got.shape}, not {exact.shape}")
    finite = np.isfinite(exact)
    same = np.array_equal(got[~finite], exact[~finite], equal_nan=True)
    largest = _largest(exact[finite])
    off, allowed = np.abs(got[finite] - exact[finite]), 2 * _largest(rounded[finite] - exact[finite]) + 1e-5 * largest
    worst = _largest(off) if same and not np.isnan(off).any() else float("inf")
    if wide and worst > allowed and off.size:
        most = np.maximum(allowed, 1e-4 + 2e-6 * np.abs(exact[finite]))
        at = int(np.argmax(off - most)) if np.isfinite(worst) else 0
        worst, allowed = (float(off[at]) if np.isfinite(worst) else worst), float(most[at])
    return Verdict(output=name, error=worst, bar=float(allowed), largest=largest, elements=int(exact.size))


def _largest(a: np.ndarray) -> float:
    return float(np.max(np.abs(a))) if a.size else 0.0
