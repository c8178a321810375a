"""Programs around products that are streamed along their sums: epilogues, gates, row statistics, parts of the stream."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.case import Case, Program
from tests.fuzz.choices import Choices
from tests.fuzz.expressions import Scope

BATCHES = ((), ("z",), ("z", "y"))
DIMS = {"z": "Z", "y": "Y", "i": "M", "n": "N", "k": "K"}
SIZES = ((70, 72, 136), (1, 8, 8), (130, 136, 40), (129, 200, 0), (0, 16, 24), (66, 1, 200), (200, 65, 64), (33, 130, 16))


@dataclass(kw_only=True)
class Shape:
    """What the schedule has to know of a program. operands: tensor -> its tile's index; products: accumulator -> operands."""

    batch: tuple[str, ...]
    operands: dict[str, str]
    products: dict[str, tuple[str, str]]
    staged: list[str] = field(default_factory=list)  # results that can lie in shared memory on their way out
    bytes: dict[str, int] = field(default_factory=dict)  # of an element of each
    others: list[str] = field(default_factory=list)  # other results
    combined: dict[str, str] = field(default_factory=dict)  # of them, those that several CTAs make: by what
    whole: int = 0  # columns, if a CTA has all of a row
    columns: str = "n"
    along: str = "k"


def products(c: Choices) -> Case:
    target = c.pick("sm_90a", "sm_80")
    program = Program(c)
    exact = c.chance(15)
    statistics = c.pick("", "", "", "together", "whole")
    shape = _declared(program, c, gated=c.chance(30))
    fixed = {}
    if statistics == "whole":
        shape.whole = fixed["N"] = c.pick(64, 80, 128, 32)
    axes = {x: DIMS[x] for x in (*shape.batch, "i", "n")}
    scope = Scope(program, axes, exact)
    left = f"[{','.join(axes)}]"
    main = _combined(program, scope, shape, left)
    split = not statistics and not exact and c.chance(20)
    _results(program, scope, shape, left, main)
    if statistics == "together":
        _together(program, scope, shape, left, main)
    if statistics == "whole":
        _whole(program, scope, shape, left, main)
    schedule = f"schedule fuzzed for fuzzed on {target} {{\n" + "\n".join(schedule_lines(c, shape, target, split)) + "\n}\n"
    sizes = _sizes(c, shape, fixed)
    kind = ("gated " if len(shape.products) > 1 else "") + "product"
    kind += f", rows {statistics}" if statistics else ", split" if split else ""
    return Case(
        kind=kind,
        text="wg 1\n" + program.text() + schedule,
        target=target,
        sizes=sizes,
        dims=fixed,
        options=program.options,
        dtype=c.pick("bf16", "f16"),
        fills=program.fills,
        exact=exact,
        any_order=split or any(how == "atomic_add" for how in shape.combined.values()),
    )


def _declared(program: Program, c: Choices, gated: bool) -> Shape:
    batch = c.pick(*BATCHES)
    program.declare("dims " + ", ".join(DIMS[x] for x in (*batch, "i", "n", "k")))
    names = ["A", "B", *(["B2"] if gated else [])]
    operands = {n: "i" if n == "A" else "n" for n in names}
    access = {}
    for name, tile in operands.items():
        mine = [x for x in batch if name == "A" or not c.chance(25)]
        axes = c.pick([*mine, tile, "k"], [*mine, "k", tile])
        if c.chance(25):
            axes = [*c.order(axes[:-1]), axes[-1]]
        program.tensor(name, "T", [DIMS[x] for x in axes])
        access[name] = f"{name}[{','.join(axes)}]"
    shape = Shape(batch=batch, operands=operands, products={})
    left = ",".join((*batch, "i", "n"))
    for acc, right in (("Acc", "B"), ("Up", "B2"))[: 1 + gated]:
        factors = c.order([access["A"], access[right]])
        program.state(f"{acc}[{left}] = sum[k] {factors[0]} * {factors[1]}")
        shape.products[acc] = ("A", right)
    return shape


def _combined(program: Program, scope: Scope, shape: Shape, left: str) -> str:
    """The value that results are made of: one accumulator, or a product of both."""
    c = program.c
    if len(shape.products) == 1:
        return f"Acc{left}" if scope.exact else c.pick(f"Acc{left} * {program.number(0.1)}", f"Acc{left}")
    if scope.exact:
        return c.pick(f"Acc{left} - Up{left}", f"max(Acc{left}, Up{left})")
    gate = c.pick("silu", "gelu", "sigmoid", "relu", "tanh")
    return f"{gate}(Acc{left} * {program.number(0.1)}) * Up{left} * {program.number(0.1)}"


def _results(program: Program, scope: Scope, shape: Shape, left: str, main: str) -> None:
    c = program.c
    value = scope.value(main, c.index(4))
    if c.chance(30):
        program.statement(f"E{left}", value + _where(program, scope))
        value = f"E{left}"
    names = ["C", *(["D"] if c.chance(30) else [])]
    for k, name in enumerate(names):
        if k:
            value = scope.value(c.pick(value if len(value) < 60 else main, main), c.index(3))
        axes = [*shape.batch, "i", "n"]
        if c.chance(30):
            axes = [*c.order(axes[:-1]), "n"] if c.chance(60) else c.order(axes)
        dtype = c.pick("f32", "T", "i32") if scope.exact else c.pick("f32", "T")
        if dtype == "i32":
            value = f"i32({value})"
        program.declare(f"out {name}: {dtype}[{', '.join(DIMS[x] for x in axes)}]")
        program.statement(f"{name}[{','.join(axes)}]", value + _where(program, scope))
        (shape.staged if axes[-1] == "n" and dtype != "i32" else shape.others).append(name)
        shape.bytes[name] = 2 if dtype == "T" else 4


def _where(program: Program, scope: Scope) -> str:
    c = program.c
    if not c.chance(30):
        return ""
    number, factor = ("-1", "2 * ") if scope.exact else ("-1.0", "0.5 * ")
    otherwise = c.pick("", "", f" else {number}", f" else {scope.rows}", f" else {factor}{scope.columns}")
    return f" where {scope.predicate(c.index(3))}{otherwise}"


STATISTICS = (("max", "{0}"), ("min", "{0}"), ("max", "abs({0})"), ("sum", "{0}"), ("sum", "0.1 * {0} * {0}"))


def _together(program: Program, scope: Scope, shape: Shape, left: str, main: str) -> None:
    """Statistics of rows that CTAs make together."""
    c = program.c
    for k in range(1 + c.index(2)):
        op, form = c.pick(*STATISTICS)
        body = f"Y{k}{left}" if c.chance(30) else main
        if body != main:
            program.state(f"Y{k}{left} = {main} where {scope.predicate(1)}")
        axes = c.order([*shape.batch, "i"]) if c.chance(20) else [*shape.batch, "i"]
        program.declare(f"out s{k}: f32[{', '.join(DIMS[x] for x in axes)}]")
        program.state(f"s{k}[{','.join(axes)}] = {op}[n] {form.format(body if body != main else f'({main})')}")
        shape.combined[f"s{k}"] = "atomic_add" if op == "sum" else f"atomic_{op}"


def _whole(program: Program, scope: Scope, shape: Shape, left: str, main: str) -> None:
    """Statistics of rows, each of one CTA, which results may read back."""
    c = program.c
    row = f"[{','.join((*shape.batch, 'i'))}]"
    body = f"X{left}"
    program.state(f"{body} = {main}" + (f" where {scope.predicate(1)}" if c.chance(30) else ""))
    program.declare(f"out F: f32[{', '.join(DIMS[x] for x in (*shape.batch, 'i', 'n'))}]")
    way = c.index(5)
    if way == 0:
        program.state(f"q{row} = sum[n] {body} * {body}", f"F{left} = {body} * rsqrt(q{row} / N + 0.01)")
    elif way == 1:
        program.state(f"F{left} = softmax[n] 0.1 * {body}")
    elif way == 2:
        program.state(f"q{row} = max[n] abs({body})", f"F{left} = {body} / (q{row} + 1.0)")
    elif way == 3:
        program.state(f"q{row} = sum[n] {body} / N", f"v{row} = sum[n] ({body} - q{row}) ** 2 / N")
        program.state(f"F{left} = ({body} - q{row}) * rsqrt(v{row} + 0.01)")
    else:
        program.declare(f"out p: i32[{', '.join(DIMS[x] for x in (*shape.batch, 'i'))}]")
        program.state(f"p{row} = {c.pick('argmax', 'argmin')}[n] {body}", f"F{left} = {body}")
        shape.others.append("p")
    shape.others.append("F")


# Schedules.

REGISTERS = {1: (24, 240), 2: (24, 240), 3: (32, 160)}


def _tile(c: Choices, shape: Shape, most: int) -> int:
    """Columns of a tile, of which so many fit."""
    if shape.whole:
        return shape.whole
    return c.pick(*[n for n in (64, 128, 32, 96, 16, 48, 192, 256) if n * len(shape.products) <= most] or [32])


def _grid(c: Choices, shape: Shape, kind: str, part: str) -> str:
    axes = [*shape.batch, *part, "i", *([] if shape.whole else [shape.columns])]
    return f"grid {kind}over ({', '.join(c.order(axes) if c.chance(50) else axes)})"


def _finish(c: Choices, shape: Shape, staged: list[str]) -> list[str]:
    rest = [n for n in (*shape.staged, *shape.others, *shape.combined) if n not in staged]
    lines = [f"finish {', '.join(rest)}"] if rest else []
    return lines + [f"finish {n} via {n}s" for n in staged]


def _combine(c: Choices, shape: Shape, split: bool) -> list[str]:
    if split:
        return [f"combine {', '.join((*shape.staged, *shape.others))} by atomic_add"]
    return [f"combine {n} by {how}" for n, how in shape.combined.items()]


def schedule_lines(c: Choices, shape: Shape, target: str, split: bool = False) -> list[str]:
    return (_hopper if target == "sm_90a" else _ampere)(c, shape, split)


def _hopper(c: Choices, shape: Shape, split: bool) -> list[str]:
    columns, along = shape.columns, shape.along
    _, right = next(iter(shape.products.values()))
    own = c.chance(15) and not split
    groups = 2 if own else c.pick(2, 1, 3)
    n = _tile(c, shape, {1: 192, 2: 192, 3: 128}[groups])
    k = c.pick(64, 32, 128, 16)
    persistent = own or c.chance(50)
    kind = "" if not persistent else c.pick("persistent ", "persistent dynamic ", "persistent static ")
    if own and "dynamic" in kind:
        kind = "persistent "
    load, math = (40, 232) if own or ("dynamic" in kind and groups == 2) else REGISTERS[groups]
    rows = 64 * (1 if own else groups)
    staged = [] if split else [x for x in shape.staged if c.chance(60)]
    slot = 2 * k * (rows + n * len(shape.products))
    room = 200_000 - sum(4 * rows * n * (2 if own else 1) for _ in staged)
    deepest = max(1, min(5, room // slot))
    depth = 1 + c.index(deepest)
    separate = c.chance(25)
    depths = {t: 1 + c.index(deepest) if separate else depth for t in shape.operands}
    loaders = _loaders(c, shape, separate, min(depths.values()) > 2, groups < 3)
    load = load if len(loaders) == 1 else 24
    lines = [
        f"tile i {rows}, {'' if shape.whole else f'{columns} {n}, '}{along} {k}",
        f"stream {along}{c.pick('', ' descending')}{f' split s in {c.pick(2, 3, 5)}' if split else ''}",
        _grid(c, shape, kind, "s" if split else ""),
        *_combine(c, shape, split),
        *(f"role {name} : 1 warpgroup, registers {load}" for name in loaders),
        f"role math : {groups} warpgroups, registers {math}, split {'tiles' if own else 'i'}",
        *(f"smem {t}s = {t}[{x}, {along}] by tma ring {depths[t]}" for t, x in shape.operands.items()),
    ]
    fits = len(staged) == 1 and not own and 64 * shape.bytes[staged[0]] <= 2 * k and depths[right] >= groups
    over = c.pick("", "", f" over {right}s") if fits else ""
    lines += [f"smem {t}s = {t}[i, {columns}] by tma{over}" for t in staged]
    behind = c.pick(along, f"{along}-1") if min(depths.values()) > 1 else along
    issues = [f"issue {acc} += wgmma({a}s[{along}], {b}s[{along}])" for acc, (a, b) in shape.products.items()]
    behinds = [c.pick(behind, along) for _ in shape.products]
    awaits = [f"await {acc}[{at}]" for acc, at in zip(shape.products, behinds, strict=True)]
    if c.chance(40):
        awaits = awaits[-1:] if len(awaits) > 1 else awaits
    loop = [f"for {along} {{", *issues, *awaits, "}"]
    body = ["in turn {", *loop, "}"] if own else loop
    for name, fills in loaders.items():
        lines += [f"{name} {{ for {along} {{", *fills, "} }"]
    return [*lines, "math {", *body, *_finish(c, shape, staged), "}"]


def _loaders(c: Choices, shape: Shape, separate: bool, deep: bool, room: bool) -> dict[str, list[str]]:
    """Roles that fill, and their fills: on one barrier, or each operand by itself, one of them a slice ahead."""
    if not separate and c.chance(80):
        return {"load": ["fill " + ", ".join(f"{t}s[{shape.along}]" for t in shape.operands)]}
    early = c.pick("", "+1") if separate and deep else ""
    first, *rest = (f"fill {t}s[{shape.along}{early if n == 0 else ''}]" for n, t in enumerate(shape.operands))
    return {"load": [first], "other": rest} if separate and room and c.chance(40) else {"load": [first, *rest]}


def _ampere(c: Choices, shape: Shape, split: bool) -> list[str]:
    columns, along = shape.columns, shape.along
    left, _ = next(iter(shape.products.values()))
    warps = c.pick(4, 4, 8)
    rows = c.pick(64, 128) if warps == 4 else 128
    n = _tile(c, shape, 128 if rows == 64 or warps == 8 else 96)
    k = c.pick(64, 32, 16)
    staged = [] if split else [x for x in shape.staged if c.chance(60)]
    ahead = c.chance(60)
    depth = 2 + c.index(2) if ahead else 1 + c.index(2)
    part = ["s"] if split else []
    lines = [
        f"tile i {rows}, {'' if shape.whole else f'{columns} {n}, '}{along} {k}",
        f"stream {along}{c.pick('', ' descending')}{f' split s in {c.pick(2, 3, 5)}' if split else ''}",
        _grid(c, shape, c.pick("", "", "persistent "), "".join(part)),
        *_combine(c, shape, split),
        f"role math : {warps} warps, registers 255, split i",
        *(f"smem {t}s = {t}[{x}, {along}] by cp_async ring {depth}" for t, x in shape.operands.items()),
        *(f"smem {t}s = {t}[i, {columns}] by copy" for t in staged),
    ]
    fill = "fill " + ", ".join(f"{t}s[{along}{'+1' if ahead else ''}]" for t in shape.operands)
    issues = [f"issue {acc} += mma({a}s[{along}], {b}s[{along}])" for acc, (a, b) in shape.products.items()]
    first = [f"await {left}s[{along}]", fill] if ahead and c.chance(70) else [fill]
    lines += ["math {", f"for {along} {{", *first, *issues, "}", *_finish(c, shape, staged), "}"]
    return lines


def _sizes(c: Choices, shape: Shape, fixed: dict[str, int]) -> tuple[dict[str, int], ...]:
    first = SIZES[0] if c.chance(50) else c.pick(*SIZES)
    out = []
    for m, n, k in (first, c.pick(*SIZES)):
        sizes = {"M": m, "N": n, "K": k, **{DIMS[x]: c.pick(2, 1, 3) for x in shape.batch}, **fixed}
        out.append(sizes)
    return tuple(out)
