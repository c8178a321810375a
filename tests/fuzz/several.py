"""Programs by schedules of two kernels: statistics of rows and what uses them, and two layers of a network."""

from __future__ import annotations

from tests.fuzz.case import Case, Program
from tests.fuzz.choices import Choices
from tests.fuzz.expressions import Scope
from tests.fuzz.products import Shape
from tests.fuzz.products import schedule_lines as product_lines
from tests.fuzz.stream_schedules import schedule_lines as stream_lines
from tests.fuzz.streams import DIMS, SIZES, Stream, Writer

HEADS = ((), ("b",), ("b", "h"))


def statistics(c: Choices) -> Case:
    """A pass over each row for its statistics, and one that uses them."""
    target, program = c.pick("sm_90a", "sm_80"), Program(c)
    s = Stream(heads=c.pick(*HEADS), scores={}, widths={})
    w = Writer(program, s, False)
    w.declare(two_scores=False, values=0)
    w.score(False)
    left, row, way = f"[{w.all}]", f"[{w.row}]", c.index(4)
    x, shape = f"X{left}", Shape(batch=s.heads, operands={"Q": "i", "K": "j"}, products={"S": ("Q", "K")})
    shape.columns, shape.along = "j", "d"
    match way:
        case 0:
            between = ["P.max", "P.sum"]
            program.state(f"P{left} = softmax[j] {x}")
            value = f"P{left}"
        case 1:
            between = ["Z"]
            program.state(f"Z{row} = logsumexp[j] {x}")
            value = f"exp({x} - Z{row})"
        case 2:
            between = ["Z"]
            program.state(f"Z{row} = sum[j] {x} * {x}")
            value = f"{x} * rsqrt(Z{row} + 0.5)"
        case _:
            between = ["Z", "Y"]
            program.state(f"Z{row} = max[j] {x}", f"Y{row} = min[j] {x}")
            value = f"({x} - Y{row}) / (1.0 + Z{row} - Y{row})"
    dtype, axes = c.pick("T", "f32"), [*s.heads, "i", "j"]
    axes = [*c.order(axes[:-1]), "j"] if c.chance(30) else axes
    program.declare(f"out C: {dtype}[{', '.join(DIMS[a] for a in axes)}]")
    program.state(f"C[{','.join(axes)}] = {w.scope.value(value, c.index(2))}")
    shape.staged, shape.bytes = ["C"], {"C": 2 if dtype == "T" else 4}
    s.rows = between
    kernels = {"first": (between, stream_lines(c, s, target)), "second": (["C"], product_lines(c, shape, target))}
    m, n = c.pick(*SIZES)
    sizes = {"M": m, "N": n, **{DIMS[a]: c.pick(2, 1) for a in s.heads}, **s.widths}
    return _case(c, program, target, "statistics and use", kernels, (sizes,), s.widths)


def layers(c: Choices) -> Case:
    """A layer whose result passes as 16-bit values to the next one."""
    target, program = c.pick("sm_90a", "sm_80"), Program(c)
    program.declare("dims M, N, K, E")
    program.tensor("A", "T", ["M", "K"])
    program.tensor("B", "T", c.pick(["N", "K"], ["K", "N"]))
    over = c.pick("e,n", "n,e")
    program.tensor("D", "T", ["E", "N"] if over == "e,n" else ["N", "E"])
    access = "n,k" if "in B: T[N, K]" in program.declared else "k,n"
    program.state(f"Acc[i,n] = sum[k] A[i,k] * B[{access}]")
    scope = Scope(program, {"i": "M", "n": "N"})
    program.state(f"H[i,n] = T({scope.value('Acc[i,n] * 0.1', 1 + c.index(2))})")
    program.state(f"Y[i,e] = sum[n] H[i,n] * D[{over}]")
    program.declare("out Y: T[M, E]")  # f32 would show where a hidden value is rounded to its other neighbour
    first = Shape(batch=(), operands={"A": "i", "B": "n"}, products={"Acc": ("A", "B")}, staged=["H"], bytes={"H": 2})
    second = Shape(batch=(), operands={"H": "i", "D": "e"}, products={"Y": ("H", "D")}, staged=["Y"])
    second.columns, second.along, second.bytes = "e", "n", {"Y": 2}
    kernels = {"first": (["H"], product_lines(c, first, target)), "second": (["Y"], product_lines(c, second, target))}
    m, n, k, e = c.pick((70, 72, 136, 40), (130, 136, 40, 200), (1, 8, 8, 8), (129, 200, 0, 16), (66, 64, 200, 72))
    return _case(c, program, target, "two layers", kernels, ({"M": m, "N": n, "K": k, "E": e},), {})


def _case(
    c: Choices,
    program: Program,
    target: str,
    kind: str,
    kernels: dict[str, tuple[list[str], list[str]]],
    sizes: tuple[dict[str, int], ...],
    fixed: dict[str, int],
) -> Case:
    inside = "\n".join(
        f"kernel {name} computes {', '.join(made)} {{\n" + "\n".join(lines) + "\n}" for name, (made, lines) in kernels.items()
    )
    return Case(
        kind=kind,
        text=f"wg 1\n{program.text()}schedule fuzzed for fuzzed on {target} {{\n{inside}\n}}\n",
        target=target,
        sizes=sizes,
        dims=fixed,
        options=program.options,
        dtype=c.pick("bf16", "f16"),
        fills=program.fills,
    )
