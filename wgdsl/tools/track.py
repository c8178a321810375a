"""A GPU on which the candidates of a contest run.

In: a contest.  Out: `GpuTrack`. All candidates work on the same random inputs, and write to the same outputs, which hold NaN
before. The smaller call, beside float64, has the dims of the contest halved until NumPy does it in seconds; it keeps as many
work items as that allows, since it is the longest dims that are halved.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..driver import compile
from ..program.graph import Input, Output, ProgramGraph
from ..reference.random import random_inputs
from ..reference.shapes import solve_dims
from ..runtime import cuda
from ..runtime.bind import shape_of
from ..runtime.kernel import Kernel
from ..runtime.staging import Stage
from ..runtime.timing import FLUSH, cold_times
from .contest import Contest, Wrong
from .judge import Expected, expected
from .running import parameters, run, unwritten
from .trying import arguments
from .work import work

OPERATIONS = 4e9  # of the smaller call
POINTS = 2**26  # of all its tensors together, those in between included
GRANULE = 16  # a length that the copy engine takes for every element type
LOOKED_AT = 2**20  # elements of a result of the whole call
APART = 4  # times the bar of the smaller call: how far two right results may be apart in the whole one


class GpuTrack:
    """See `contest.Track`. The device's context has to be current: `on_gpu` makes it so."""

    def __init__(self, contest: Contest, device: int):
        self.contest, self.device = contest, device
        self.stage = Stage(device)
        self.kernels: dict[str, Kernel] = {}
        self.launches: dict[str, Any] = {}
        self.expected: dict[frozenset[str], Expected] = {}
        self.bars: dict[str, float] = {}  # of each output of any candidate, as a part of its largest value
        self.dims = next(iter(contest.trials.values())).dims

    def load(self, name: str) -> None:
        kernel = self.kernels[name] = compile(**arguments(self.contest.trials[name]))
        if kernel.approximated not in self.expected:
            self.expected[kernel.approximated] = self._expected(kernel)

    def _expected(self, kernel: Kernel) -> Expected:
        inputs = random_inputs(kernel.graph, self._small(kernel), self.contest.seed)
        given = kernel.interface.sort((), {**inputs, **parameters(kernel, self._small(kernel))}, None)
        bound = kernel.bound(given)
        untouched = {n.tensor: unwritten(shape_of(n, bound), n.dtype) for n in kernel.graph.outputs}
        return expected(kernel.graph, inputs | untouched, bound.scalars, bound.dims, kernel.approximated)

    def _small(self, kernel: Kernel) -> dict[str, int]:
        fixed = {name for t in self.contest.trials.values() for name in t.settings.dims}
        return smaller(kernel.graph, self.dims, fixed)

    def prove(self, name: str) -> None:
        kernel = self.kernels[name]
        done = run(kernel, self._small(kernel), device="gpu", seed=self.contest.seed)
        for v in self.expected[kernel.approximated].verdicts(done.results):
            if not v.right:
                raise Wrong(str(v))
            self.bars[v.output] = max(self.bars.get(v.output, 0.0), v.bar / v.largest if v.largest else 0.0)

    def fill(self) -> None:
        if not self.bars:
            return  # no candidate is right
        kernel = next(iter(self.kernels.values()))
        inputs = random_inputs(kernel.graph, self.dims, self.contest.seed)
        given = kernel.interface.sort((), {**inputs, **parameters(kernel, self.dims)}, None)
        self.outputs = kernel.host_outputs(given)
        self.inputs = inputs
        self.views = {name: self.stage.put(a, copy=True) for name, a in inputs.items()}
        self.views |= {name: self.stage.put(a, copy=False) for name, a in self.outputs.items()}
        self.scratch = self.stage.put(np.empty(FLUSH, np.uint8), copy=False).pointer

    def result(self, name: str) -> dict[str, np.ndarray]:
        kernel, d = self.kernels[name], cuda.driver()
        given = kernel.interface.sort((), {**self.inputs, **parameters(kernel, self.dims)}, None)
        self.launches[name] = kernel.launches(given, self.views)
        for output, array in self.outputs.items():
            if array.nbytes:
                cuda.checked(d.cuMemsetD8(self.views[output].pointer, 0xFF, array.nbytes), "cuMemsetD8")
        for launch in self.launches[name]:
            launch.run(0)
        cuda.checked(d.cuCtxSynchronize(), "cuCtxSynchronize")
        return {n: self._some(n, a) for n, a in self.outputs.items() if a.dtype.kind not in "iub"}

    def _some(self, name: str, array: np.ndarray) -> np.ndarray:
        """Elements of an output anywhere in it, the same of each candidate."""
        self.stage.get(self.views[name], array)
        if array.size <= LOOKED_AT:
            return array.astype(np.float32).ravel()
        places = np.random.default_rng(0).integers(0, array.size, LOOKED_AT)
        return array.reshape(-1)[places].astype(np.float32)

    def same(self, one: str, a: Mapping[str, np.ndarray], other: str, b: Mapping[str, np.ndarray]) -> bool:
        return all(alike(a[n], b[n], APART * self.bars[n]) for n in a)

    def calls(self, name: str, count: int) -> list[float]:
        return [1e6 * s for s in cold_times(self.launches[name], self.scratch, count)]

    def lost(self) -> bool:
        return bool(int(cuda.driver().cuCtxSynchronize()[0]))


@contextmanager
def on_gpu(contest: Contest) -> Iterator[GpuTrack]:
    """A track on the current device. Nothing is freed in the end: that is the end of its process."""
    with cuda.on_device(cuda.current_device()) as device:
        yield GpuTrack(contest, device.ordinal)


def alike(a: np.ndarray, b: np.ndarray, apart: float) -> bool:
    """Whether results differ by at most that part of the largest value, and have the same elements that are no numbers."""
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    largest = float(np.max(np.abs(a[finite]), initial=0.0))
    return bool(np.max(np.abs(a[finite] - b[finite]), initial=0.0) <= apart * largest)


def smaller(graph: ProgramGraph, dims: Mapping[str, int], fixed: Collection[str]) -> dict[str, int]:
    """The dims of a call of which float64 is soon known: the largest halved again and again, of two rather that of no result,
    and those that are fixed left alone. What is no multiple of a granule stays as far from one."""
    free = {n: dims[n] for n in graph.dims if n in dims}
    gridded = {s for o in graph.outputs for p in o.shape for s in p.symbols()}
    while work(graph, now := solve_dims(graph, {}, free)) > OPERATIONS or _points(graph, now) > POINTS:
        name = max((n for n in free if n not in fixed), key=lambda n: (free[n], n not in gridded), default=None)
        if name is None or free[name] <= 1:
            break
        size = free[name]
        free[name] = size // 2 // GRANULE * GRANULE + size % GRANULE if size >= 4 * GRANULE else size // 2
    return solve_dims(graph, {}, free)


def _points(graph: ProgramGraph, dims: Mapping[str, int]) -> int:
    """Elements of all tensors."""
    declared = [n.shape for n in graph.nodes if isinstance(n, Input | Output)]
    between = [[graph.extents[i] for i in n.indices] for n in graph.nodes if not isinstance(n, Input | Output)]
    return sum(math.prod(p.evaluate(dims) for p in shape) for shape in (*declared, *between))
