"""Random elementwise expressions and predicates over the indices of a statement.

What they compute is well-conditioned, so that float32 and float64 agree within the project's error bar: a value changes at
most a few times as fast as its argument. Comparisons of computed values jump, and are drawn only where all is exact.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.fuzz.case import Program

SMOOTH = (
    "relu({0})",
    "abs({0})",
    "0.5 * {0}",
    "-{0}",
    "tanh({0})",
    "sigmoid({0})",
    "erf({0})",
    "gelu({0})",
    "gelu_tanh({0})",
    "silu({0})",
    "exp(-abs({0}))",
    "exp2(-abs({0}))",
    "exp(min({0}, 1.0))",
    "log(1.0 + abs({0}))",
    "log2(2.0 + abs({0}))",
    "sqrt(0.5 + abs({0}))",
    "rsqrt(1.0 + abs({0}))",
    "0.1 * {0} ** 2",
    "min({0}, 1.5)",
    "max({0}, -1.0, 0.25 * {0})",
    "select({0} > 0.5, {0}, 0.75 - 0.5 * {0})",
    "{0} / (1.0 + abs({0}))",
)
WHOLE = (
    "relu({0})",
    "abs({0})",
    "2 * {0}",
    "-{0}",
    "min({0}, 3)",
    "max({0}, -2, 1)",
    "select({0} > 1, {0}, -1)",
    "select({0} != 0, 1, 5)",
    "T({0})",
    "f32(bf16({0}))",
    "i32({0})",
)


class Scope:
    """What a statement's right side may name. axes: index -> dim, those of the batch first, then the rows' and the columns'."""

    def __init__(self, program: Program, axes: Mapping[str, str], exact: bool = False):
        self.p, self.c, self.axes, self.exact = program, program.c, dict(axes), exact
        self.rows, self.columns = [*axes, *axes][-2:]  # one and the same if there is but one

    def value(self, main: str, depth: int) -> str:
        """An expression in which `main` takes part."""
        for _ in range(depth):
            main = self._applied(main)
        return main

    def _applied(self, x: str) -> str:
        c = self.c
        way = c.index(9)
        if way <= 3:
            form = c.pick(*(WHOLE if self.exact else SMOOTH))
            return self.p.wrapped(x, lambda v: f"({form.format(v)})" if form[0] in "-0" else form.format(v))
        other = self.other()
        if way <= 5:
            return f"({x} {c.pick('+', '-')} {other})"
        if way == 6:
            return f"{x} * {other}"
        if way == 8:
            return f"select({self.predicate(1)}, {x}, {other})"
        return f"{c.pick('min', 'max')}({x}, {other})"

    def other(self) -> str:
        """A value that isn't computed: of a tensor, an index, a constant."""
        way = self.c.index(6)
        if way == 5 and not self.exact:
            return f"0.01 * {self.c.pick(*[d for d in self.axes.values() if d in 'MN'])}"
        if way == 0:
            return self.p.number(self.c.pick(1, 2, 3)) if self.exact else self.p.number(self.c.pick(0.5, 1.5, 0.25, 2.0))
        if way == 1:
            return self.position()
        return self.extra()

    def position(self) -> str:
        i, n = self.rows, self.columns
        if self.c.chance(20):
            n = self.p.integer_name(f"{n} - {self.c.pick(1, 5)}")
        a, m = self.c.pick((i, n), (n, i)), self.c.pick(2, 3, 7)
        whole = self.c.pick(f"({a[0]} % {m})", f"(({i} - {n}) % {m})", f"(({a[0]} / {8 * m} - {a[1]} / {8 * m}) % {m})")
        if self.exact:
            return whole
        return self.c.pick(f"0.125 * {whole}", f"(0.01 * ({i} - {n}))", f"0.02 * abs({i} - {n})", f"(0.25 * {whole})")

    def extra(self, truth: bool = False) -> str:
        """An element of a new tensor, over some of the axes; others are left out or have length 1."""
        places = []
        for x, dim in self.axes.items():
            how = self.c.index(4)
            if how != 2:
                places.append(("1", "0") if how == 3 else self._place(x, dim))
        if all(at == "0" for _, at in places):
            places.append((self.axes[self.columns], self.columns))
        if self.c.chance(25):
            places = self.c.order(places)
        shape, access = [d for d, _ in places], [at for _, at in places]
        name = self.p.new("t" if truth else "w")
        if truth:
            self.p.tensor(name, "bool", shape)
        else:
            dtype = self.c.pick("f32", "T", "f32", "T", "i32") if not self.exact else self.c.pick("f32", "T", "i32")
            self.p.tensor(name, dtype, shape, "integers" if self.exact or dtype == "i32" else "small")
        return f"{name}[{','.join(access)}]"

    def _place(self, x: str, dim: str) -> tuple[str, str]:
        """An axis and where an index stands in it: bare, moved, or in blocks."""
        if dim not in "MN" or not self.c.chance(12):
            return dim, x
        k = self.c.pick(4, 16)
        moved, blocks, spread = (
            (f"{dim} + {k}", f"{x} + {k // 2}"),
            (f"{dim} / {k} + 1", f"{x} / {k}"),
            (f"2 * {dim}", f"2 * {x}"),
        )
        return self.c.pick(moved, blocks, spread)

    # Predicates.

    def predicate(self, depth: int) -> str:
        """A truth value of indices and tensors."""
        if depth == 0 or self.c.chance(30):
            return self.atom()
        way = self.c.index(5)
        if way == 4:
            return f"not ({self.predicate(depth - 1)})"
        return f"({self.predicate(depth - 1)} {self.c.pick('and', 'or', 'and')} {self.predicate(depth - 1)})"

    def atom(self) -> str:
        c, i, n = self.c, self.rows, self.columns
        way = c.index(14) if i != n else c.pick(3, 4, 8)  # compared with itself an index says nothing
        if way >= 11:
            return self.of_tensors()
        shift = c.pick(0, 17, -5, 64, 40, -30)
        moved = i if shift == 0 else f"{i} + {self.p.integer(shift)}"
        if c.chance(30):
            moved += f" + {self.axes[n]} - {self.axes[i]}"
        size = c.pick(64, 32, 48, 100)
        match way:
            case 0 | 1:
                return f"{n} {c.pick('<=', '<')} {moved}"
            case 2:
                return f"{moved} - {self.p.integer(size)} <= {n} <= {moved}"
            case 3:
                return f"{n} {c.pick('<', '>=')} {self.p.integer(size)}"
            case 4:
                return f"{i} {c.pick('>=', '<', '!=')} {self.p.integer(c.pick(3, 64, 70))}"
            case 5:
                return f"({i} - {n}) % {c.pick(2, 3, 5)} {c.pick('==', '!=')} 0"
            case 6:
                return f"{i} / {size} == {n} / {size}"
            case 7:
                return f"{n} / {size} <= {i} / {size}"
            case 8:
                return f"{n} % {c.pick(2, 7)} != {c.pick(0, 1)}"
            case 9:
                return f"{n} {c.pick('>', '>=')} {moved}"
            case _:
                return f"{moved} {c.pick('!=', '==')} {n}"

    def of_tensors(self) -> str:
        c, i, n = self.c, self.rows, self.columns
        batch = list(self.axes)[:-2][:1]
        way = c.index(6)
        if way == 0:
            return self.extra(truth=True)
        if way == 5 and i != n:
            flag = self.p.new("flag")
            self.p.declare(f"in {flag}: bool = {c.pick('true', 'false')}")
            return f"({flag} {c.pick('or', 'and')} {i} != {n})"
        if way == 1:
            return f"{self.extra()} {c.pick('>', '<=')} {0 if self.exact else 0.2}"
        if way == 2 and batch:
            return (
                f"{n} < {self.p.tensor(self.p.new('len'), 'i32', [self.axes[batch[0]]], f'lengths:{self.axes[n]}')}[{batch[0]}]"
            )
        one, two = self.p.new("doc"), self.p.new("doc")
        self.p.tensor(one, "i32", [*(self.axes[b] for b in batch), self.axes[i]], "ids")
        self.p.tensor(two, "i32", [*(self.axes[b] for b in batch), self.axes[n]], "ids")
        at = "".join(f"{b}," for b in batch)
        return f"{one}[{at}{i}] {c.pick('==', '!=', '<=')} {two}[{at}{n}]"
