"""replay: run one CTA of one kernel with exactly the items of a witness, in one order of events after another.

In: a role program and a witness.  Out: the problem of the fault it meets, or None. What is computed isn't looked at: a word may
hold an item twice and items of different dims, so inputs are random, and any element of an output may be stored, any number of
times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..diagnostics.model import Problem, WgError
from ..roles.model import Kernel, RoleProgram, TensorArg
from ..roles.witness import Witness
from .agent import Item
from .cta import Cta
from .orders import CANONICAL, Order, everyone, falling_behind, order_of, single_warps
from .tensors import Tensor, make_tensor, shape_of
from .world import World

LIMIT = 500_000  # steps of one run
INTS = 3  # random integers lie below it


def replay(
    program: RoleProgram, witness: Witness, *, kinds: tuple[type[Problem], ...] | None = None, seeds: Iterable[int] = range(20)
) -> Problem | None:
    """The first fault: in the canonical order, or in the witness's own; then with each agent as late and as early as can be;
    then in the orders of the seeds. kinds: go on until there is a fault of these; if there is none, the first there was."""
    kernel = next(k for k in program.kernels if k.name == witness.kernel)
    first = None
    with np.errstate(all="ignore"):
        for order, seed in _orders(kernel, witness, seeds):
            problem = _fault(kernel, witness, order, seed)
            if problem is not None and (kinds is None or isinstance(problem, kinds)):
                return problem
            first = first or problem
    return first


def _orders(kernel: Kernel, witness: Witness, seeds: Iterable[int]) -> Iterator[tuple[Order, int]]:
    if witness.late:
        yield falling_behind(witness.late), 0
    yield CANONICAL, 0
    for who in (*everyone(kernel), *single_warps(kernel)):
        yield Order(behind=(who,)), 0
        yield Order(ahead=(who,)), 0
    for seed in seeds:
        yield order_of(seed, kernel), seed


def _fault(kernel: Kernel, witness: Witness, order: Order, seed: int) -> Problem | None:
    try:
        Cta(_world(kernel, witness), items_of(witness), 0, order, seed).run()
    except WgError as e:
        return e.problems[0]
    return None


def items_of(witness: Witness) -> list[Item]:
    """Numbered as they stand in the word: it may hold an item twice."""
    return [Item(number, dict(i.indices), dict(i.dims)) for number, i in enumerate(witness.items)]


def _world(kernel: Kernel, witness: Witness) -> World:
    dims = dict(witness.dims)
    sizes = [{**dims, **dict(i.dims)} for i in witness.items] or [dims]
    random = np.random.default_rng(0)
    tensors = {t.name: _tensor(t, sizes, random) for t in kernel.tensors}
    scalars = {p.name: 1.0 for p in kernel.params if p.kind in ("scalar", "number", "flag")}
    scalars |= {name: float(holds) for name, holds in witness.flags}
    return World(kernel=kernel, dims=dims, scalars=scalars, tensors=tensors, limit=LIMIT, lenient=True)


def _tensor(t: TensorArg, sizes: list[dict[str, int]], random: np.random.Generator) -> Tensor:
    """Large enough for every item."""
    shape = tuple(max(0, *extents) for extents in zip(*(shape_of(t, s) for s in sizes), strict=True))
    if t.written:
        return make_tensor(t, shape, None)
    values = random.uniform(-1, 1, shape) if t.dtype.kind == "float" else random.integers(0, INTS, shape)
    return make_tensor(t, shape, values)
