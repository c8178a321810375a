"""Expressions over a register tile as C++: what is the same for all elements is computed once, what is the same along a
row once a row, and only the rest for each element.

A thread holds two rows of a tile of 64 (`half` 0 and 1), four of one of 128, and the elements `at` of the accumulator layout.
An element's column is the thread's first column plus `col`, a constant once the loop is unrolled; so an integer predicate costs
one comparison with a limit that is known per row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

import numpy as np

from ..diagnostics.model import InternalError
from ..foundation.dtypes import DType
from ..foundation.names import identifier
from ..program.expr import (
    SIGNS,
    Affine,
    Apply,
    Cast,
    Cmp,
    Const,
    Expr,
    IndexValue,
    Load,
    Logic,
    Reg,
    Scalar,
    Select,
    conjunction,
    exponent,
    indices_of,
    loads,
    regs,
    walk,
    whole_numbers,
)
from ..program.poly import Poly, Symbol
from ..roles.model import Axis
from ..targets.wgmma import ACCUMULATOR, N_STEP, PAIRS, Digit, accumulator, v8_accumulator
from .context import RoleContext, stride_key
from .control import at_least_zero
from .eight_bits import narrowing, widening
from .integers import PRIMARY, PRODUCT, SUM, Integers
from .scope import Temporaries
from .writer import bare


@dataclass(frozen=True, kw_only=True)
class Written(Expr):
    """C++ text that stands for an element."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Whole(Expr):
    """An integer as one: an element of a tensor, an index, or a number. Every other value is a float."""

    arg: Expr


NAMES = {"float": "f", "bool": "ok", "int": "n"}  # of values that are kept


class Rank(IntEnum):
    """What a value depends on: nothing in the tile, the row, or the element."""

    UNIFORM = 0
    ROW = 1
    TILE = 2


def _digits(digits: tuple[Digit, ...], name: str) -> str:
    """The compile-time digits of a coordinate as text."""
    terms = []
    for d in sorted(digits, key=lambda d: -d.scale):
        text = name if d.divide == 1 else f"{name} / {d.divide}"
        text = text if d.modulo is None else f"{text} % {d.modulo}"
        terms.append(text if d.scale == 1 else f"{text} * {d.scale}")
    return " + ".join(terms)


HALF_ROWS = next(d for d in ACCUMULATOR.row if d.source == "element").scale


def half_line(rows: int) -> str:
    """Which of a thread's rows an element stands in, for tiles of so many rows."""
    half = next(d for d in accumulator(rows).row if d.source == "element")
    return f"const int half = at / {half.divide} % {half.modulo};"


def col_line(rows: int, v8: int = 0) -> str:
    """Its column, from the thread's first one on. v8: the columns of a tile in that order."""
    fragment = v8_accumulator(v8) if v8 else accumulator(rows)
    digits = tuple(d for d in fragment.col if d.source == "element")
    return f"const int col = {_digits(digits, 'at')};"


def halves_loop(halves: int) -> str:
    """The head of a loop over a thread's rows."""
    return f"for (int half = 0; half < {halves}; ++half)"


BEYOND = 2.0**128 - 2.0**103  # from here on a number is rounded to an infinite f32


def float_text(value: float) -> str:
    """A number as a C++ float literal."""
    value = float(value)
    assert abs(value) < BEYOND, "special values have functions of their own"
    text = str(np.float32(value))
    return (text if any(c in text for c in ".e") else text + ".0") + "f"


class Elements:
    """One operation on a tile of `rows` x `cols` (or on rows alone): collects what its loops compute beforehand."""

    def __init__(self, ctx: RoleContext, rows: Axis, cols: Axis | None, names: Temporaries):
        self.ctx, self.rows, self.cols, self.names = ctx, rows, cols, names
        self.uniform: list[str] = []
        self.arrays: list[str] = []
        self.row_head: list[str] = []
        self.row: list[str] = []
        self.column: list[str] = []
        self.tile_head: list[str] = []
        self._memo: dict[object, str] = {}
        self.row_name = names.fresh(identifier(f"{rows.index}_row"))
        self.first_name = self.col_name = ""
        ints = ctx.ints.binding(rows.index, self.row_name, ctx.ints.is_natural(rows.origin))
        if cols is not None:
            self.first_name = names.fresh(identifier(f"{cols.index}_first"))
            self.col_name = names.fresh(identifier(f"{cols.index}_col"))
            ints = ints.binding(cols.index, self.col_name, ctx.ints.is_natural(cols.origin))
        self.ints: Integers = ints
        self.ranges = {a.index: (a.origin, a.origin + (a.count - 1)) for a in (rows, cols) if a is not None} | ctx.ranges

    def rank(self, e: Expr) -> Rank:
        if isinstance(e, Written):
            return Rank.TILE
        if isinstance(e, Reg):
            return Rank.TILE if self.ctx.kernel.value(e.name).kind in ("tile", "elements") else Rank.ROW
        if isinstance(e, IndexValue | Affine):
            return self.poly_rank(e.poly)
        if isinstance(e, Load):
            return max((self.poly_rank(p) for p in e.access), default=Rank.UNIFORM)
        return max((self.rank(c) for c in e.children()), default=Rank.UNIFORM)

    def poly_rank(self, p: Poly) -> Rank:
        symbols = p.symbols()
        if self.cols is not None and self.cols.index in symbols:
            return Rank.TILE
        return Rank.ROW if self.rows.index in symbols else Rank.UNIFORM

    def text(self, e: Expr, level: Rank) -> str:
        """C++ of `e` where it stands: outside the loops, in the loop over rows, or in that over elements."""
        own = self.rank(e)
        if level == Rank.TILE and self._is_of_column(e):
            return self._of_column(e)
        if own < level and not _stands(e):
            return self.kept(e, type_of(e), own, level, lambda: self._inline(e, own), NAMES[type_of(e)])
        return self._inline(e, level)

    def _is_of_column(self, e: Expr) -> bool:
        """Whether two rows would load the same: then it is worth a loop over columns."""
        if self.cols is None or not loads(e) or regs(e) or self.rank(e) < Rank.TILE:
            return False
        return self.rows.index not in indices_of(e) and not any(isinstance(x, Written) for x in walk(e))

    def _of_column(self, e: Expr) -> str:
        """A value that is computed once a column."""
        if e not in self._memo:
            text = bare(self._inline(e, Rank.TILE))
            self._memo[e] = self.names.fresh(NAMES[type_of(e)])
            self.column.append(f"const {type_of(e)} {self._memo[e]} = {text};")
        return self._memo[e]

    def kept(self, key: object, kind: str, own: Rank, level: Rank, make: Callable[[], str], base: str) -> str:
        """A value of C++ type `kind` that is computed at rank `own`, once, and read at `level`; named after `base`."""
        if key not in self._memo:
            text = bare(make())
            name = self.names.fresh(identifier(base))
            if own == Rank.UNIFORM:
                self.uniform.append(f"{'' if kind.endswith('*') else 'const '}{kind} {name} = {text};")
            else:
                self.arrays.append(f"{kind} {name}[{self.ctx.halves}];")
                self.row.append(f"{name}[half] = {text};")
            self._memo[key] = name
        return self._memo[key] if own == Rank.UNIFORM else self.of_row(self._memo[key], level)

    def of_row(self, name: str, level: Rank) -> str:
        if level == Rank.TILE:
            self.half()
        return f"{name}[half]"

    def half(self) -> None:
        self._once(self.tile_head, half_line(self.ctx.rows))

    def col(self) -> str:
        self._once(self.tile_head, self.col_line())
        return "col"

    @property
    def v8(self) -> int:
        """The columns of the tile, if they lie in the order v8."""
        return self.cols.count if self.cols is not None and self.cols.index == self.ctx.kernel.v8 else 0

    def col_line(self) -> str:
        return col_line(self.ctx.rows, self.v8)

    @staticmethod
    def _once(lines: list[str], line: str) -> None:
        if line not in lines:
            lines.append(line)

    def emit(self, row_body: list[str], tile_body: list[str], elements: int = 0) -> None:
        """Write the loops: what was collected since the last time, then the bodies, whose texts must be made before."""
        out = self.ctx.out
        for text in (*self.uniform, *self.arrays):
            out.line(text)
        if self.row or row_body:
            out.loop(halves_loop(self.ctx.halves), [*self.row_head, *self.row, *row_body])
        if tile_body and self.column:
            self._by_columns(tile_body, elements)
        elif tile_body:
            out.loop(f"for (int at = 0; at < {elements}; ++at)", [*self.tile_head, *tile_body])
        self.uniform, self.arrays, self.row_head, self.row, self.column, self.tile_head = [], [], [], [], [], []

    def _by_columns(self, tile_body: list[str], elements: int) -> None:
        """All rows of a column together, so that what holds for the column is there once."""
        out, rows, halves = self.ctx.out, self.ctx.rows, self.ctx.halves
        head = [x for x in self.tile_head if x not in (half_line(rows), self.col_line())]
        out.unroll()
        with out.block(f"for (int pair = 0; pair < {elements // halves}; ++pair)"):
            octets = self.v8 // PAIRS // N_STEP
            col = f"pair / {2 * octets} * 2 + pair / 2 % {octets} * 16" if octets else "pair / 2 * 8"
            out.line(f"const int col = {col} + pair % 2;")
            for text in (*(x for x in head if "half" not in x), *self.column):
                out.line(text)
            at = f"const int at = pair / 2 * {2 * halves} + half * 2 + pair % 2;"
            out.loop(halves_loop(halves), [at, *(x for x in head if "half" in x), *tile_body])

    @property
    def declares(self) -> bool:
        """Whether something was collected that needs a block of its own."""
        return bool(self.uniform or self.arrays)

    def _inline(self, e: Expr, level: Rank) -> str:
        match e:
            case Written():
                return e.text
            case Const():
                return ("true" if e.value else "false") if isinstance(e.value, bool) else self.number(e.value)
            case Scalar():
                return self.ctx.scope.get("scalar", e.name)
            case Reg():
                value, name = self.ctx.value(e.name)
                if value.kind == "elements":
                    return self.held(value.dtype, name)
                return f"{name}[at]" if value.kind == "tile" else self.of_row(name, level)
            case IndexValue():
                return self._number(e.poly, level)
            case Affine():
                return self._affine((e.poly,), level)
            case Logic():
                return self._logic(e, level)
            case Cmp():
                return self._comparison(e, level)
            case Whole():
                return self._whole(e.arg, level)
            case Select():
                cond, then, other = (self.text(x, level) for x in (e.cond, e.then, e.other))
                if any(self._calls(x, level) for x in (e.then, e.other)):
                    # Both sides are computed: a branch around a call in every element would serialise wgmma (C7511).
                    return f"{self.ctx.ptx('choose')}({bare(cond)}, {bare(then)}, {bare(other)})"
                return f"({cond} ? {then} : {other})"
            case Cast():
                return self._cast(e, level)
            case Load():
                return self._load(e, level)
            case Apply():
                return self._apply(e, level)
        raise InternalError(f"no C++ for the expression {e}")

    def held(self, dtype: DType, name: str) -> str:
        """An element of registers that hold them as they stand in memory, two to a register or one."""
        if dtype.nbytes == 2:
            return f"{self.ctx.ptx('widen', dtype.name)}((unsigned short)({name}[at / 2] >> at % 2 * 16))"
        return f"(float)(int){name}[at]" if dtype.kind == "int" else f"__uint_as_float({name}[at])"

    def _calls(self, e: Expr, level: Rank) -> bool:
        """Whether the C++ of `e` calls a function where it stands; what holds for a row is computed before."""
        plain = ("add", "sub", "mul", "neg")
        return any(isinstance(x, Apply) and x.fn not in plain and self.rank(x) == level for x in walk(e))

    def number(self, value: float) -> str:
        """A constant as C++. Constants are folded in float64: what is too large for f32 is infinite there."""
        if math.isnan(value):
            return "__int_as_float(0x7fffffff)"
        if abs(value) >= BEYOND:
            return f"{'-' if value < 0 else ''}{self.ctx.ptx('infinity')}()"
        return float_text(value)

    def _apply(self, e: Apply, level: Rank) -> str:
        n = exponent(e)
        if n is not None:
            return f"{self.ctx.ptx('power', n)}({bare(self.text(e.args[0], level))})"
        a = [self.text(x, level) for x in e.args]
        infix = {"add": "+", "sub": "-", "mul": "*"}
        if e.fn in infix:
            return f"({a[0]} {infix[e.fn]} {a[1]})"
        if e.fn == "neg":
            return f"(-{a[0]})"
        if e.fn not in BUILT_IN and e.fn not in OF_PTX:
            raise InternalError(f"no C++ for the function {e.fn}")
        name = BUILT_IN[e.fn] if e.fn in BUILT_IN else self.ctx.ptx(OF_PTX[e.fn])
        return f"{name}({', '.join(bare(x) for x in a)})"

    def _comparison(self, e: Cmp, level: Rank) -> str:
        sides: tuple[Expr, ...] = (e.left, e.right)
        if whole_numbers(sides, lambda t: self.ctx.kernel.tensor(t).dtype.kind == "int"):
            sides = tuple(Whole(arg=x) for x in sides)
        left, right = (self.text(x, level) for x in sides)
        return f"({left} {SIGNS[e.op]} {right})"

    def _whole(self, e: Expr, level: Rank) -> str:
        if isinstance(e, Load):
            return self._inside(e, level, self.element(e.tensor, e.access, level), "0")
        if isinstance(e, IndexValue):
            return self.poly(e.poly, level, PRIMARY)
        assert isinstance(e, Const)
        return str(int(e.value))

    def _cast(self, e: Cast, level: Rank) -> str:
        inner = self.text(e.arg, level)
        if e.dtype.name == "f32":
            return inner
        if e.dtype.name == "i32":
            return f"(float)(int){inner}"
        if e.dtype.kind == "float":
            narrow, wide = (self.ctx.ptx(of(e.dtype), e.dtype.name) for of in (narrowing, widening))
            return f"{wide}({narrow}({bare(inner)}))"
        raise InternalError(f"no C++ for a cast to {e.dtype}")

    def poly(self, p: Poly, level: Rank, tight: int = 0) -> str:
        """Integer text; the row and column of the element are declared where they are used."""
        self._declare_indices(p, level)
        return self.ints.text(p, tight)

    def _declare_indices(self, p: Poly, level: Rank) -> None:
        symbols = p.symbols()
        if self.rows.index in symbols:
            origin = self._start(self.rows.origin, self.ctx.fragment_row())
            where = self.row_head if level <= Rank.ROW else self.tile_head
            if where is self.tile_head:
                self.half()
            self._once(where, f"const int {self.row_name} = {origin} + {HALF_ROWS} * half;")
        if self.cols is not None and self.cols.index in symbols:
            self._first()
            self._once(self.tile_head, f"const int {self.col_name} = {self.first_name} + {self.col()};")

    def _start(self, origin: Poly, offset: str) -> str:
        return offset if origin.constant == 0 else f"{self.ctx.ints.text(origin, SUM)} + {offset}"

    def _first(self) -> str:
        assert self.cols is not None
        start = self._start(self.cols.origin, self.ctx.fragment_col(bool(self.v8)))
        if "first column" not in self._memo:
            self._memo["first column"] = self.first_name
            self.uniform.append(f"const int {self.first_name} = {start};")
        return self.first_name

    def _split(self, p: Poly) -> tuple[Poly, int] | None:
        """(what holds for the thread's first column, factor of `col`) of a polynomial that is linear in the column."""
        assert self.cols is not None
        factor = p.coefficient(self.cols.index)
        if factor is None or factor.constant is None:
            return None
        return p, factor.constant

    def _at_first(self, p: Poly, level: Rank, tight: int = 0) -> str:
        """Text of `p` at the thread's first column."""
        assert self.cols is not None
        if self.cols.index in p.symbols():
            self._first()
        self._declare_indices(p.substitute({self.cols.index: 0}), level)
        natural = self.ctx.ints.is_natural(self.cols.origin)
        return self.ints.binding(self.cols.index, self.first_name, natural).text(p, tight)

    def _below(self, p: Poly) -> Rank:
        """The rank of `p` at a fixed column."""
        return Rank.ROW if self.rows.index in p.symbols() else Rank.UNIFORM

    def _number(self, p: Poly, level: Rank) -> str:
        """An integer as a float. Exact below 2^24, in parts too."""
        if p.constant is not None:
            return float_text(p.constant)
        if self.poly_rank(p) < Rank.TILE:
            return f"(float){self.poly(p, level, PRIMARY)}"
        split = self._split(p)
        if split is None:
            return f"(float){self.poly(p, level, PRIMARY)}"
        own = self._below(p)
        start = self.kept(("number", p), "float", own, level, lambda: f"(float){self._at_first(p, own, PRIMARY)}", "start")
        return f"({start} + (float)({_times(split[1], self.col())}))"

    def _affine(self, polys: tuple[Poly, ...], level: Rank) -> str:
        """All of `polys` >= 0; if they vary along the row, their columns have one common factor."""
        if self.poly_rank(polys[0]) < Rank.TILE:
            for p in polys:
                self._declare_indices(p, level)
            return f"({at_least_zero(self.ctx, polys[0], self.ints)})"
        split = self._split(polys[0])
        if split is None:
            self._declare_indices(polys[0], level)
            return f"({at_least_zero(self.ctx, polys[0], self.ints)})"
        own = max(self._below(p) for p in polys)

        bound = self.kept(("limit", *polys), "int", own, level, lambda: self._smallest(polys, own), "limit")
        return f"({_times(-split[1], self.col())} <= {bound})"

    def _smallest(self, polys: tuple[Poly, ...], level: Rank) -> str:
        """The least of the polynomials at the thread's first column."""
        out = ""
        for p in polys:
            own = self._below(p)
            if own == level:
                text = self._at_first(p, level)
            else:
                text = self.kept(("limit", p), "int", own, level, partial(self._at_first, p, own), "limit")
            out = f"min({out}, {text})" if out else text
        return out

    def _logic(self, e: Logic, level: Rank) -> str:
        if e.op == "not":
            return f"!{self.text(e.args[0], level)}"
        parts: list[str] = []
        groups: dict[int, list[Poly]] = {}
        for a in e.args:
            split = self._split(a.poly) if isinstance(a, Affine) and self.rank(a) == Rank.TILE else None
            if e.op == "and" and split is not None:
                groups.setdefault(split[1], []).append(a.poly)  # type: ignore[attr-defined]
            else:
                parts.append(self.text(a, level))
        parts += [self._affine(tuple(polys), level) for polys in groups.values()]
        return parts[0] if len(parts) == 1 else "(" + {"and": " && ", "or": " || "}[e.op].join(parts) + ")"

    def proven(self, p: Poly) -> bool:
        """Whether p >= 0 follows from the known ranges of indices."""
        for symbol, (low, high) in self.ranges.items():
            factor = p.coefficient(symbol)
            if factor is None:
                continue
            if self.ints.is_natural(-factor):
                p = p.substitute({symbol: high})
            elif self.ints.is_natural(factor):
                p = p.substitute({symbol: low})
        return p.constant >= 0 if p.constant is not None else self.ints.is_natural(p)

    def in_range(self, access: tuple[Poly, ...], shape: tuple[Poly, ...]) -> Expr:
        """The predicate that an access stays inside a shape, without what is certain."""
        bounds = [b for p, extent in zip(access, shape, strict=True) for b in (p, extent - 1 - p)]
        return conjunction(*(Affine(poly=b) for b in bounds if not self.proven(b)))

    def _load(self, e: Load, level: Rank) -> str:
        tensor = self.ctx.kernel.tensor(e.tensor)
        element = self.element(e.tensor, e.access, level)
        name = tensor.dtype.name
        if tensor.dtype.kind == "float" and name != "f32":
            element = f"{self.ctx.ptx(widening(tensor.dtype), name)}({element})"
        elif name in ("i32", "bool"):
            element = f"(float){element}"
        elif name != "f32":
            raise InternalError(f"no C++ for a load of {name} elements")
        return self._inside(e, level, element, "0.0f")

    def _inside(self, e: Load, level: Rank, element: str, nothing: str) -> str:
        """An element, or what stands for one that lies outside of the tensor."""
        inside = self.in_range(e.access, self.ctx.kernel.tensor(e.tensor).shape)
        return element if inside == conjunction() else f"({self.text(inside, level)} ? {element} : {nothing})"

    def element(self, tensor: str, access: tuple[Poly, ...], level: Rank) -> str:
        """`pointer[offset]`, 64-bit, with the parts that hold for all elements or for a row taken out."""
        arg = self.ctx.kernel.tensor(tensor)
        parts: dict[Rank, list[str]] = {r: [] for r in Rank}
        for axis, p in enumerate(access):
            stride = self.ctx.scope.get("stride", stride_key(tensor, axis))
            for rank, text in self._address_terms(p):
                if text != "0":
                    parts[rank].append(stride if text == "1" else f"{text} * {stride}")
        kind = f"{'' if arg.written else 'const '}{arg.dtype.cuda}*"
        pointer = self.ctx.scope.get("pointer", tensor)
        for rank in (Rank.UNIFORM, Rank.ROW):
            if parts[rank] and rank < level:
                terms = [pointer, *parts.pop(rank)]
                key = ("pointer", tensor, access, rank)
                pointer = self.kept(key, kind, rank, level, partial(" + ".join, terms), f"{tensor}_at")
        rest = [t for r in Rank for t in parts.get(r, ())]
        return f"{pointer}[{' + '.join(rest) or '0'}]"

    def _address_terms(self, p: Poly) -> list[tuple[Rank, str]]:
        """The summands of an index by rank; the column's constant part alone is left to the element."""
        by_rank: dict[Rank, dict] = {r: {} for r in Rank}
        column = 0
        for m, c in p.terms:
            term = Poly(((m, c),))
            if self.cols is not None and m == (Symbol(self.cols.index),):
                column = c
                by_rank[Rank.UNIFORM][m] = c
            else:
                by_rank[self.poly_rank(term)][m] = c
        out = []
        for rank, terms in by_rank.items():
            if terms:
                poly = Poly(tuple(terms.items()))
                text = self._at_first(poly, rank, PRODUCT) if rank < Rank.TILE and column else self.poly(poly, rank, PRODUCT)
                out.append((rank, text))
        if column:
            out.append((Rank.TILE, _times(column, self.col())))
        return out


def _times(factor: int, text: str) -> str:
    return {1: text, -1: f"-{text}", 0: "0"}.get(factor, f"{factor} * {text}")


def _stands(e: Expr) -> bool:
    """Whether a value that holds for several elements is written where it is used."""
    return isinstance(e, Const | Scalar | Reg) or (isinstance(e, Whole) and isinstance(e.arg, Const))


def type_of(e: Expr) -> str:
    """The C++ type of an expression's value."""
    if isinstance(e, Affine | Cmp | Logic) or (isinstance(e, Const) and isinstance(e.value, bool)):
        return "bool"
    if isinstance(e, Select):
        return type_of(e.then)
    return "int" if isinstance(e, Whole) else "float"


# Functions.

BUILT_IN = {"log": "logf", "log2": "log2f", "erf": "erff", "sqrt": "__fsqrt_rn", "rsqrt": "rsqrtf",
            "abs": "fabsf", "rcp": "__frcp_rn", "div": "__fdiv_rn", "pow": "powf"}  # fmt: skip
OF_PTX = {"exp2": "exp2", "exp": "exp", "max": "max_nan", "min": "min_nan", "relu": "relu", "sigmoid": "sigmoid",
          "silu": "silu", "gelu": "gelu", "gelu_tanh": "gelu_tanh", "tanh": "tanh", "tanh_approx": "tanh_approx"}  # fmt: skip
