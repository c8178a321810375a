"""Lowerings of steps that list tiles.

A warp takes its rows a few at a time, and its lanes the columns, so that neighbours in memory are neighbours in the warp. What
hangs on the column alone is computed before the rows, and what hangs on the row alone before the columns, so that the loads of
those few rows are under way together. When it is known that the condition holds somewhere and not everywhere, the warp stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..foundation.names import identifier
from ..program.expr import Expr
from ..program.poly import Poly
from ..roles.model import Axis, Classify, ListTile, Tally
from ..targets.registers import LANES, WARPS
from .context import RoleContext, stride_key
from .elements import NAMES, Elements, Rank, type_of
from .integers import PRODUCT, SUM
from .lowering import lowers
from .scope import Temporaries
from .writer import bare

TOGETHER = 8  # rows at a time


class Scan(Elements):
    """The elements of a tile in rows of a warp: one row and one column are in hand."""

    def __init__(self, ctx: RoleContext, rows: Axis, cols: Axis, names: Temporaries):
        super().__init__(ctx, rows, cols, names)
        self.times = -(-cols.count // LANES)  # columns of a lane
        self.ranges[rows.index] = rows.origin, ctx.kernel.index_extents[rows.index] - 1  # no others are looked at

    def kept(self, key: object, kind: str, own: Rank, level: Rank, make: Callable[[], str], base: str) -> str:
        if own == Rank.UNIFORM:
            return super().kept(key, kind, own, level, make, base)
        if key not in self._memo:
            text = bare(make())
            self._memo[key] = self.names.fresh(identifier(base))
            self.arrays.append(f"{kind} {self._memo[key]}[{TOGETHER}];")
            self.row.append(f"{self._memo[key]}[q] = {text};")
        return f"{self._memo[key]}[q]"

    def _of_column(self, e: Expr) -> str:
        if e not in self._memo:
            text, kind = bare(self._inline(e, Rank.TILE)), type_of(e)
            self._memo[e] = self.names.fresh(NAMES[kind])
            self.arrays.append(f"{kind} {self._memo[e]}[{self.times}];")
            self.column.append(f"{self._memo[e]}[k] = {text};")
        return f"{self._memo[e]}[k]"

    def _split(self, p: Poly) -> None:
        """The column is in hand, so nothing is gained by comparing with a limit of the row."""

    def _declare_indices(self, p: Poly, level: Rank) -> None:
        """Both are declared by the loops."""

    def _address_terms(self, p: Poly) -> list[tuple[Rank, str]]:
        by_rank: dict[Rank, dict] = {}
        for monomial, c in p.terms:
            by_rank.setdefault(self.poly_rank(Poly(((monomial, c),))), {})[monomial] = c
        return [(rank, self.ints.text(Poly(tuple(terms.items())), PRODUCT)) for rank, terms in sorted(by_rank.items())]

    @contextmanager
    def columns(self) -> Iterator[None]:
        """A loop over the lane's columns; the last ones may lie beyond the tile."""
        assert self.cols is not None
        out, start = self.ctx.out, self.ctx.ints.text(self.cols.origin, SUM)
        out.unroll()
        with out.block(f"for (int k = 0; k < {self.times}; ++k)"):
            out.define("const int", self.col_name, f"{start} + k * {LANES} + {self.ctx.lane()}")
            yield

    @contextmanager
    def rows_from(self, first: str, end: str) -> Iterator[None]:
        """A loop over some rows, the last of which comes again in place of those behind it."""
        out = self.ctx.out
        out.unroll()
        with out.block(f"for (int q = 0; q < {TOGETHER}; ++q)"):
            out.define("const int", self.row_name, f"min({first} + q, {end} - 1)")
            yield


@lowers(Classify)
def classify(ctx: RoleContext, step: Classify) -> None:
    ctx.need_all_threads(step)
    out, rows, share = ctx.out, step.rows, step.rows.count // WARPS
    some, every = (ctx.value(n)[1] for n in (step.some, step.every))
    out.comment(f"{step.some}, {step.every} = {step.cond} somewhere, and everywhere")
    with ctx.scope.temporaries() as names, out.block():
        scan = Scan(ctx, rows, step.cols, names)
        cond = bare(scan.text(step.cond, Rank.TILE))
        first, end = names.fresh("first"), names.fresh("end")
        found, all_ = names.fresh("found"), names.fresh("all")
        for text in (*scan.uniform, *scan.arrays):
            out.line(text)
        if scan.column:
            with scan.columns():
                for text in scan.column:
                    out.line(text)
        origin = ctx.ints.text(rows.origin, SUM)
        out.line(f"int {first} = {origin} + {ctx.thread()} / {LANES} * {share};")
        out.line(f"const int {end} = min({first} + {share}, {ctx.text(ctx.kernel.index_extents[rows.index])});")
        out.line(f"bool {found} = false, {all_} = true;")
        out.unroll(1)
        with out.block(f"for (; {first} < {end}; {first} += {TOGETHER})"):
            if scan.row:
                with scan.rows_from(first, end):
                    for text in scan.row:
                        out.line(text)
            with scan.rows_from(first, end), scan.columns():
                _look(scan, step.cols, cond, found, all_)
            out.line(f"if (__any_sync(~0u, {found}) && __any_sync(~0u, !{all_})) break;")
        out.line(f"{some} = __any_sync(~0u, {found});")
        out.line(f"{every} = __all_sync(~0u, {all_});")


def _look(scan: Scan, cols: Axis, cond: str, found: str, all_: str) -> None:
    out = scan.ctx.out
    lines = [f"const bool holds = {cond};", f"{found} |= holds;", f"{all_} &= holds;"]
    if cols.count % LANES == 0:
        for text in lines:
            out.line(text)
        return
    with out.block(f"if (k * {LANES} + {scan.ctx.lane()} < {cols.count})"):
        for text in lines:
            out.line(text)


@lowers(ListTile)
def list_tile(ctx: RoleContext, step: ListTile) -> None:
    ctx.need_all_threads(step)
    some, every, count = (ctx.value(n)[1] for n in (step.some, step.every, step.count))
    meet = f"{ctx.text(step.id)}, {step.threads}"
    ctx.out.line(f"{some} = {ctx.ptx('bar_any')}({meet}, {some});")
    ctx.out.line(f"{every} = {ctx.ptx('bar_all')}({meet}, {every});")
    with ctx.block(f"if ({some})"):
        entry = f"{ctx.text(step.tile * 2, SUM)} + {every}"
        place = _place(ctx, step.tensor, step.access, count)
        ctx.out.line(f"++{count};")
        ctx.out.line(f"if ({ctx.role_thread()} == 0) {place} = {entry};")


@lowers(Tally)
def tally(ctx: RoleContext, step: Tally) -> None:
    ctx.need_all_threads(step)
    place = _place(ctx, step.tensor, step.access)
    ctx.out.line(f"if ({ctx.role_thread()} == 0) {place} = {ctx.value(step.count)[1]};")


def _place(ctx: RoleContext, tensor: str, access: tuple[Poly, ...], *more: str) -> str:
    at = [*(ctx.text(p, PRODUCT) for p in access), *more]
    strides = (ctx.scope.get("stride", stride_key(tensor, k)) for k in range(len(at)))
    terms = (f"{text} * {stride}" for text, stride in zip(at, strides, strict=True))
    return f"{ctx.scope.get('pointer', tensor)}[{' + '.join(terms)}]"
