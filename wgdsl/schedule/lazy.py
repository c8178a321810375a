"""lazy: `rescale O when grown by 8`: a state that follows its maximum only where that has grown by much.

In: the streamed graph and a role's steps.  Out: for each lazy state the growth, in log2, up to which it stays. What is scaled
to it then stays too, so everything that is made of both is exact in the end; an output that shows the state itself isn't.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from random import Random

from ..diagnostics.model import WgError
from ..diagnostics.schedule import BadNumber, CantBeLazy
from ..program.expr import Apply, Cmp, Const, Expr, Load, loads, walk
from ..program.functions import number
from ..program.streamed import OLD_SUFFIX, State, Streamed
from ..syntax import ast
from .constants import constant
from .plan import steps_of

MOST = 15  # an operand grows to 2^15, which f16 still holds
BENT = ("min", "max", "abs", "relu")
TRIALS = 4  # of random numbers; an output that depends on the reference shows it in the first
CLOSE = 1e-9


def correction_exponent(s: State) -> Expr:
    """x of a correction 2^x."""
    assert isinstance(s.correction, Apply)
    return s.correction.args[0]


def lazy_states(streamed: Streamed, steps: tuple[ast.Step, ...], accumulators: dict[str, str]) -> dict[str, float]:
    """State -> limit. `accumulators`: the names in the schedule and their nodes. Raises WgError."""
    policies: dict[str, tuple[float | None, ast.RescaleStep]] = {}
    for s in steps_of(steps):
        if not isinstance(s, ast.RescaleStep):
            continue
        name = s.target.id if isinstance(s.target, ast.Name) else s.target.base.id
        state = streamed.state(accumulators.get(name, ""))
        if state is None or state.correction is None:
            continue
        limit = None if s.grown_by is None else _limit(s.grown_by)
        for reference in state.references:
            other = policies.setdefault(reference, (limit, s))
            if other[0] != limit:
                why = f"another `rescale` has another policy for what `{name}` is scaled to"
                raise WgError(CantBeLazy(span=s.span, accumulator=name, why=why, cure="write the same on both"))
        if limit is not None:
            _check(streamed, name, state, s)
    return {name: limit for name, (limit, _) in policies.items() if limit is not None}


def _limit(e: ast.Expr) -> float:
    value = constant(e)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST:
        rule = f"it must be a number above 0 and at most {MOST}"
        raise WgError(BadNumber(span=e.span, what="the growth in log2", value=value, rule=rule))
    return float(value)


def _check(streamed: Streamed, name: str, state: State, s: ast.RescaleStep) -> None:
    """One reference, moved by a power of two, that no output shows."""
    reference = state.references[0]
    sharing = [t for t in streamed.states if reference in t.references]
    if any(t.references != (reference,) or t.correction != state.correction for t in sharing):
        why = "it isn't scaled to one running value alone"
        raise WgError(CantBeLazy(span=s.span, accumulator=name, why=why, cure=f"`rescale {name}`"))
    if not (isinstance(state.correction, Apply) and state.correction.fn == "exp2"):
        why = "its correction is no power of two"
        raise WgError(CantBeLazy(span=s.span, accumulator=name, why=why, cure=f"`rescale {name}`"))
    shown = [(o.tensor, o.value) for o in streamed.outputs] + [(f.name, f.body) for f in streamed.folds]
    for shows, value in shown:
        if not _same_wherever(value, reference, sharing):
            why = f"`{shows}` shows what it is scaled to, which isn't the true maximum then"
            raise WgError(CantBeLazy(span=s.span, accumulator=name, why=why, cure=f"`rescale {name}`"))


def _same_wherever(value: Expr, reference: str, sharing: Iterable[State]) -> bool:
    """Whether an output stays when the reference is another and all that is scaled to it follows: tried with numbers.

    Numbers tell only of what is smooth, so whatever is compared, or cut off, has to stay by itself.
    """
    random = Random(0)
    return all(_same(e, reference, sharing, random) for e in (value, *_decisive(value)) for _ in range(TRIALS))


def _decisive(value: Expr) -> Iterator[Expr]:
    """What comparisons and functions with a bend look at. Whether a sum is 0, or a maximum infinite, holds at any scale."""
    for e in walk(value):
        if isinstance(e, Cmp) and not (e.op in ("eq", "ne") and any(_same_at_any_scale(x) for x in e.children())):
            yield from e.children()
        if isinstance(e, Apply) and e.fn in BENT:
            yield from e.args


def _same_at_any_scale(e: Expr) -> bool:
    return isinstance(e, Const) and (e.value == 0 or math.isinf(e.value))


def _same(value: Expr, reference: str, sharing: Iterable[State], random: Random) -> bool:
    first: dict[str, float] = {}

    def at(e: Expr) -> float:
        return first.setdefault(str(e), random.uniform(0.5, 2.0))

    before = number(value, at)
    names = {str(x): x.tensor for x in loads(value)}
    moved = dict(first)
    target = random.uniform(0.5, 2.0)
    old = next((first[k] for k, t in names.items() if t == reference), random.uniform(0.5, 2.0))
    for s in sharing:
        factor = number(s.correction, lambda e: _between(e, reference, old, target, at)) if s.correction is not None else 1.0
        moved |= {k: v * factor for k, v in first.items() if names.get(k) == s.name}
    moved |= {k: target for k, t in names.items() if t == reference}
    after = number(value, lambda e: moved.get(str(e), 0.0) if str(e) in moved else at(e))
    return math.isclose(before, after, rel_tol=CLOSE) or (math.isnan(before) and math.isnan(after))


def _between(e: Expr, reference: str, old: float, new: float, at: Callable[[Expr], float]) -> float:
    """A leaf of a correction: the reference before and after, or what stays the same along the stream."""
    if isinstance(e, Load) and e.tensor in (reference, reference + OLD_SUFFIX):
        return new if e.tensor == reference else old
    return at(e)
