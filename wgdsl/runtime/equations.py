"""The equations of a call, solved by a function written out for its program: dims from shapes, where nothing is unusual.

In: the declared extents, which arrays there are, and which dims are given.  Out: a function of the shapes that finds every dim,
or says that it doesn't: a shape that disagrees, a ratio that isn't whole, a factor of 0. Those are for `bind`, which looks at
one equation after another and knows what to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..program.poly import Poly, python

Solve = Callable[
    [tuple[Any, ...], dict[str, int]], bool
]  # shapes; the dims known so far, to which it adds; whether it went well


def solver(
    extents: Sequence[Sequence[Poly]], dims: Iterable[str], known: Iterable[str], derived: Mapping[str, Poly]
) -> Solve | None:
    """extents: of each array's axes.  known: the dims that are given or fixed.  derived: evaluated afterwards. None if the
    equations can't be solved one after another."""
    settled = {*known}
    lines: list[str] = []
    pending = [(f"x[{a}][{k}]", extent) for a, shape in enumerate(extents) for k, extent in enumerate(shape)]
    while pending:
        left = []
        for value, extent in pending:
            step = _step(value, extent, settled)
            lines += step or []
            left += [] if step else [(value, extent)]
        if len(left) == len(pending):
            return None
        pending = left
    if not settled.issuperset(dims):
        return None
    lines += [f"at[{name!r}] = {python(extent)}" for name, extent in derived.items()]
    lines.append("return True")
    ranks = " and ".join(f"len(x[{a}]) == {len(shape)}" for a, shape in enumerate(extents)) or "True"
    scope: dict[str, Any] = {}
    exec("\n    ".join(("def solve(x, at):", f"if not ({ranks}): return False", *lines)), scope)
    return scope["solve"]


def _step(value: str, extent: Poly, settled: set[str]) -> list[str] | None:
    """The lines for one equation; None if it has more than one unknown."""
    unknown = sorted(extent.symbols() - settled)
    if not unknown:
        return [f"if {python(extent)} != {value}: return False"]
    if len(unknown) > 1:
        return None
    factor = extent.coefficient(unknown[0])
    if factor is None:
        return None
    settled.add(unknown[0])
    place = f"at[{unknown[0]!r}]"
    if extent.bare is not None:
        return [f"{place} = {value}"]
    rest = extent.without(unknown)
    return [
        f"factor, total = {python(factor)}, {value} - {python(rest)}",
        "if factor <= 0 or total < 0 or total % factor: return False",
        f"{place} = total // factor",
    ]
