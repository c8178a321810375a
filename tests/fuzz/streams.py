"""Programs whose scores are streamed along their columns: row reductions of them, and products of weights made of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.case import Case, Program
from tests.fuzz.choices import Choices
from tests.fuzz.expressions import Scope
from tests.fuzz.stream_schedules import schedule

HEADS = ((), ("b",), ("b", "h"), ("b", "g", "r"))
DIMS = {"b": "B", "h": "H", "g": "G", "r": "R", "i": "M", "j": "N", "d": "D", "c": "C", "e": "E", "f": "F"}
SIZES = ((70, 200), (130, 0), (201, 129), (1, 1), (64, 65), (0, 40), (129, 257), (40, 3), (200, 70))
WIDTHS = (64, 32, 40, 128, 8, 72, 16, 104, 96, 24, 192, 256, 136)
RUNNING = ("softmax", "sink")  # weights scaled to a running maximum


@dataclass(kw_only=True)
class Stream:
    """What the schedule has to know of a program. scores: product -> its row operand and its column operand; values:
    accumulator -> (column operand, result); dims: of the widths."""

    heads: tuple[str, ...]
    scores: dict[str, tuple[str, str]]
    widths: dict[str, int]
    weights: str = ""
    values: dict[str, tuple[str, str]] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)
    staged: dict[str, int] = field(default_factory=dict)  # results that can be staged: bytes of an element
    width_of: dict[str, str] = field(default_factory=dict)  # operand or result -> the dim of its columns
    kv: str = ""  # the access of keys (0, d) and values (1, e), where they are one tensor
    homes: dict[str, str] = field(default_factory=dict)  # operand -> what its home holds, if that isn't its tile
    causal: bool = False
    shows_maximum: bool = False
    apart: str = ""  # a result of its own, which no other needs a part of
    split: bool = False  # the stream is cut into parts
    extras: int = 0


def streams(c: Choices) -> Case:
    target = c.pick("sm_90a", "sm_80")
    program = Program(c)
    values = c.pick(1, 0, 1, 0, 2)
    exact = values == 0 and c.chance(25)
    s = Stream(heads=c.pick(*HEADS), scores={}, widths={})
    w = Writer(program, s, exact)
    w.declare(two_scores=c.chance(15), values=values)
    w.score(exact)
    if values:
        w.weigh()
        w.multiply()
    w.reduce()
    sums = s.weights and s.weights not in RUNNING and not s.rows
    s.split = bool(sums) and c.chance(30)
    text = schedule(c, s, target)
    sizes = []
    for k in range(2):
        m, n = c.pick(*SIZES) if k or c.chance(50) else SIZES[0]
        sizes.append({"M": m, "N": n, **{DIMS[x]: c.pick(2, 1, 3) if x in "br" else c.pick(1, 2) for x in s.heads}})
    return Case(
        kind=f"{s.weights or 'rows'}{', two values' if values == 2 else ''}{', exact' * exact}{', split' * s.split}",
        text="wg 1\n" + program.text() + text,
        target=target,
        sizes=tuple(x | s.widths for x in sizes),
        any_order=s.split,
        dims=s.widths,
        options=program.options,
        dtype=c.pick("bf16", "f16"),
        fills=program.fills,
        exact=exact,
    )


class Writer:
    """Writes the statements of one program, one group after the other."""

    def __init__(self, program: Program, s: Stream, exact: bool):
        self.p, self.c, self.s, self.exact = program, program.c, s, exact
        grouped = "r" in s.heads
        self.query = [x for x in s.heads if x not in "gr"] + (["h"] if grouped else [])  # heads as results have them
        self.key = [x for x in s.heads if x != "r"]
        self.all = ",".join((*s.heads, "i", "j"))
        self.row = ",".join((*s.heads, "i"))
        self.scope = Scope(program, {x: DIMS[x] for x in (*self.query, "i", "j")}, exact)
        self.masks = 0
        self.rows = Scope(program, {x: DIMS[x] for x in (*self.query, "i")}, exact)

    def declare(self, two_scores: bool, values: int) -> None:
        s, p, c = self.s, self.p, self.c
        widths = ["d", *(["c"] if two_scores else []), *(["e", "f"][:values])]
        dims = [DIMS[x] for x in (*s.heads, "i", "j", *widths)]
        if "r" in s.heads:
            dims.append("H = G * R")
            p.declare("let h = g * R + r")
        wide = [x for x in WIDTHS if x <= 128] if values == 2 or two_scores else WIDTHS
        if values == 1 and not two_scores and c.chance(20):
            return self._together(dims, c.pick(*WIDTHS))
        p.declare("dims " + ", ".join(dims))
        s.widths.update({DIMS[x]: c.pick(*wide) for x in widths})
        for name, rows, columns, width in (("S", "Q", "K", "d"), ("S2", "Q2", "K2", "c"))[: 1 + two_scores]:
            left = self._operand(rows, [*self.query, "i"], width)
            right = self._operand(columns, [*self.key, "j"], width)
            p.state(f"{name}[{self.all}] = sum[{width}] {left} * {right}")
            s.scores[name] = (rows, columns)

    def _together(self, dims: list[str], width: int) -> None:
        """Keys and values in one tensor."""
        s, p, c = self.s, self.p, self.c
        s.widths["D"] = width
        p.declare("dims " + ", ".join(d for d in dims if d != "E"), "index d < D, e < D")
        left = self._operand("Q", [*self.query, "i"], "d")
        axes = [*c.order(["2", *self.key, "j"]), "d"]
        p.tensor("KV", "T", [DIMS.get(x, x) for x in axes])
        s.kv = f"KV[{','.join('{0}' if x == '2' else '{1}' if x == 'd' else x for x in axes)}]"
        s.width_of |= {"K": "D", "V": "D"}
        s.homes |= {"K": "KV[j, d]", "V": "KV[j, e]"}
        p.state(f"S[{self.all}] = sum[d] {left} * {s.kv.format(0, 'd')}")
        s.scores["S"] = ("Q", "K")

    def _operand(self, name: str, axes: list[str], width: str) -> str:
        c = self.c
        outer, tile = axes[:-1], axes[-1]
        axes = [*outer, tile, width] if not c.chance(30) else [*outer, width, tile]
        if c.chance(40):
            axes = [*c.order(axes[:-1]), axes[-1]]
        self.p.tensor(name, "T", [DIMS[x] for x in axes])
        self.s.width_of[name] = DIMS[width]
        return f"{name}[{','.join(axes)}]"

    def score(self, exact: bool) -> None:
        """X, the value of each pair that exists."""
        p, c, s = self.p, self.c, self.s
        sums = " + ".join(f"{n}[{self.all}]" for n in s.scores)
        x = sums if len(s.scores) == 1 else f"({sums})"
        if exact:
            x = self.scope.value(x, c.index(3))
        else:
            x = self._modified(self._scaled(x))
        if c.chance(15):
            p.statement(f"X0[{self.all}]", x + self._mask())
            x = self.scope.value(f"X0[{self.all}]", c.index(2))
        p.statement(f"X[{self.all}]", x + self._mask())

    def _scaled(self, x: str) -> str:
        p, c = self.p, self.c
        way = c.index(4)
        if way == 0:
            p.declare("in scale: f32 = 1 / sqrt(D)", "require scale > 0")
            return f"{x} * scale"
        if way == 1 and self.query:
            at = self.query[-1]
            return f"{x} * {p.tensor(p.new('t'), 'f32', [DIMS[at]], 'small')}[{at}]"
        return f"{x} * {p.number(0.125)}"

    def _modified(self, x: str) -> str:
        p, c = self.p, self.c
        way = c.index(10)
        head = self.query[-1:] or []
        shape, at = "".join(f"{DIMS[x]}, " for x in head), "".join(f"{x}, " for x in head)
        if way == 1:
            cap = p.number(c.pick(30.0, 5.0))
            return p.wrapped(x, lambda v: f"{cap} * tanh({v} / {cap})") if cap[0] != "c" else f"{cap} * tanh({x} / {cap})"
        if way == 2 and head:
            slope = p.tensor(p.new("slope"), "f32", [DIMS[head[0]]], "slopes")
            return f"{x} {c.pick('+', '-')} {slope}[{head[0]}] * {c.pick('(j - i)', 'abs(j - i)')}"
        if way == 3:
            table = p.tensor(p.new("w"), "f32", [f"{shape}M + N - 1" if not shape else shape + "M + N - 1"], "small")
            self.p.declare("require M + N > 0")
            return f"{x} + {table}[{at}j - i + M - 1]"
        if way == 4:
            far = c.pick(16, 3)
            table = p.tensor(p.new("w"), "f32", [f"{shape}{2 * far + 1}"], "small")
            return f"{x} + {table}[{at}min(max(j - i, -{far}), {far}) + {far}]"
        return self.scope.value(x, c.index(3))

    def _mask(self) -> str:
        c = self.c
        way = c.index(5)
        if way <= 1:
            return ""
        self.masks += 1
        self.s.causal = False
        if way == 2:
            self.s.causal = self.masks == 1
            return c.pick(" where j <= i + N - M", " where j <= i", " where j <= i + 17")
        otherwise = c.pick("", "", "", "", " else -1", f" else (i - j) % 3{'' if self.exact else ' * 0.5'}")
        return f" where {self.scope.predicate(c.index(3))}{otherwise}"

    def weigh(self) -> None:
        p, c, s = self.p, self.c, self.s
        s.weights = c.pick("softmax", "softmax", "softmax", "sink", "sigmoid", "relu2", "plain", "exponential", "decay", "raw")
        x, left, row = f"X[{self.all}]", f"P[{self.all}]", f"[{self.row}]"
        match s.weights:
            case "softmax":
                if c.chance(20):
                    p.state(f"m{row} = max[j] {x}", f"p[{self.all}] = exp({x} - m{row})", f"l{row} = sum[j] p[{self.all}]")
                    p.state(f"{left} = p[{self.all}] / l{row}")
                else:
                    p.state(f"{left} = softmax[j] {x}")
            case "sink":
                sink = self.scope.c.pick("0.0", "1.5")
                if self.query:
                    name = p.tensor(p.new("sink"), "f32", [DIMS[self.query[-1]]])
                    sink = f"{name}[{self.query[-1]}]"
                p.state(f"m{row} = max(max[j] {x}, {sink})", f"p[{self.all}] = exp({x} - m{row})")
                p.state(f"l{row} = sum[j] p[{self.all}] + exp({sink} - m{row})", f"{left} = p[{self.all}] / l{row}")
            case "sigmoid":
                p.state(f"{left} = sigmoid({x} - {p.number(1.5)})")
            case "relu2":
                p.state(f"{left} = {c.pick(f'relu({x}) ** 2', f'0.25 * relu({x}) * relu({x})')}")
            case "plain":
                p.state(f"{left} = {x} * {p.number(0.5)}")
            case "raw":
                p.state(f"{left} = {x}")
            case "exponential":
                p.state(f"{left} = exp(min({x}, 2.0) - 1.0)")
            case "decay":
                p.state(f"{left} = {x} * exp2(-0.05 * abs(i - j))")

    def multiply(self) -> None:
        """Sums of weights times values, and results made of them."""
        p, c, s = self.p, self.c, self.s
        for acc, name, result, width in (("O", "V", "O", "e"), ("U", "W", "U", "f")):
            if (s.kv and acc == "U") or (not s.kv and DIMS[width] not in s.widths):
                continue
            right = s.kv.format(1, "e") if s.kv else self._operand(name, [*self.key, "j"], width)
            axes = [*self.query, "i", width]
            if c.chance(40):
                axes = [*c.order(axes[:-1]), width] if c.chance(70) else c.order(axes)
            value, dtype = f"sum[j] P[{self.all}] * {right}", c.pick("T", "T", "f32")
            if c.chance(20):
                acc = f"{acc}a"
                p.state(f"{acc}[{self.row},{width}] = {value}")
                scope = Scope(p, {x: DIMS[x] for x in (*self.query, "i")} | {width: "D" if s.kv else DIMS[width]})
                value = scope.value(f"{acc}[{self.row},{width}]", 1 + c.index(2))
                s.extras += 16
            extent = "D" if s.kv else DIMS[width]
            p.declare(f"out {result}: {dtype}[{', '.join(extent if x == width else DIMS[x] for x in axes)}]")
            p.state(f"{result}[{','.join(axes)}] = {value}")
            s.values[acc], s.width_of[result] = (name, result), extent
            if axes[-1] == width:
                s.staged[result] = 2 if dtype == "T" else 4

    def reduce(self) -> None:
        """Results with a value for each row."""
        c, s = self.c, self.s
        most = 2 if s.values else 3
        count = c.index(most + 1) if s.values else 1 + c.index(most)
        for way in c.order(self._ways())[:count]:
            way(f"r{len(s.rows)}")

    def _ways(self) -> list:
        ways = [self._lse, self._largest, self._sum]
        if self.s.weights == "sink":
            return [self._largest, self._total]
        if self.s.weights == "softmax":
            return [self._lse, self._entropy, self._largest]
        if self.exact:
            return [self._place, self._largest, self._sum, self._chosen, self._equal]
        return [*ways, self._place, self._chosen, self._entropy, self._mean] if not self.s.values else ways

    def _result(self, name: str, value: str, dtype: str = "f32") -> None:
        if dtype == "f32" and not self.exact and self.c.chance(25):
            self.p.state(f"{name}v[{self.row}] = {value}")
            value = self.rows.value(f"{name}v[{self.row}]", 1 + self.c.index(2))
        axes = [*self.query, "i"]
        axes = self.c.order(axes) if self.c.chance(30) else axes
        self.p.declare(f"out {name}: {dtype}[{', '.join(DIMS[x] for x in axes)}]")
        self.p.state(f"{name}[{','.join(axes)}] = {value}")
        self.s.rows.append(name)

    @property
    def _x(self) -> str:
        return f"X[{self.all}]"

    def _lse(self, name: str) -> None:
        self._result(name, f"logsumexp[j] {self._x}")

    def _largest(self, name: str) -> None:
        self.s.shows_maximum = True
        self._result(name, f"{self.c.pick('max', 'min') if not self.s.values else 'max'}[j] {self._x}")

    def _sum(self, name: str) -> None:
        self.s.apart = name if self.s.rows or self.s.values else ""
        self._result(name, f"sum[j] ({self.scope.value(self._x, self.c.index(2))})")

    def _place(self, name: str) -> None:
        self._result(name, f"{self.c.pick('argmax', 'argmin')}[j] {self._x}", "i32")

    def _chosen(self, name: str) -> None:
        target = self.p.tensor(self.p.new("at"), "i32", [DIMS[x] for x in (*self.query, "i")], "places:N")
        self._result(name, f"X[{self.row}, {target}[{','.join((*self.query, 'i'))}]]")

    def _equal(self, name: str) -> None:
        self.p.state(f"top[{self.row}] = max[j] {self._x}")
        self._result(name, f"sum[j] select({self._x} == top[{self.row}], 1, 0)")

    def _entropy(self, name: str) -> None:
        weights = f"P[{self.all}]"
        if not self.s.values:
            weights = f"W{name}[{self.all}]"
            self.p.state(f"{weights} = softmax[j] {self._x}")
        self.p.state(f"L{name}[{self.row}] = logsumexp[j] {self._x}")
        self._result(name, f"sum[j] {weights} * (L{name}[{self.row}] - {self._x})")

    def _mean(self, name: str) -> None:
        self.p.state(f"M{name}[{self.all}] = softmax[j] {self._x}")
        column = self.p.tensor(self.p.new("w"), "f32", ["N"], "small")
        self._result(name, f"sum[j] M{name}[{self.all}] * {column}[j]")

    def _total(self, name: str) -> None:
        self._result(name, f"log(l[{self.row}]) + m[{self.row}]")
