"""The report: what became of a schedule, in numbers.

In: the forms of a kernel and what NVRTC made of it.  Out: `Report`, whose text is `--emit report`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..diagnostics.model import Problem
from ..program.poly import elements
from ..program.text import spelled
from ..roles.model import Classify, Kernel, ListTile, Loop, Read, Role, Step, StoreGlobal, TmaStore, Value, walk
from ..targets.choice import TARGETS
from ..targets.mbarrier import MBARRIER_BYTES
from .log import Resources
from .nvrtc import Compiled
from .verdict import complaints_of

if TYPE_CHECKING:
    from .kernel import Forms


@dataclass(frozen=True, kw_only=True)
class Report:
    """Numbers of a compiled kernel. `str()` of it is the text; `resources` and `problems` are by kernel name."""

    text: str
    resources: Mapping[str, Resources]
    problems: Mapping[str, tuple[Problem, ...]]
    seconds: Mapping[str, float]

    def __str__(self) -> str:
        return self.text


def make_report(forms: Forms, binaries: Mapping[str, Compiled]) -> Report:
    """The report of a kernel, from its forms and what NVRTC made of each text."""
    problems = {k.name: tuple(complaints_of(k, binaries[k.name])) for k in forms.roles.kernels}
    seconds = {**forms.seconds, **_nvrtc_seconds(binaries)}
    lines = [*_head(forms)]
    for kernel in forms.roles.kernels:
        lines += ["", *_kernel(kernel, binaries[kernel.name], problems[kernel.name])]
    lines += ["", *_roundings(forms), "", *_times(seconds, binaries)]
    resources = {k.name: binaries[k.name].kernels[0] for k in forms.roles.kernels}
    return Report(text="\n".join(lines) + "\n", resources=resources, problems=problems, seconds=seconds)


def _head(forms: Forms) -> Iterator[str]:
    g, r = forms.graph, forms.roles
    yield f"program {g.name}, schedule {r.schedule}, target {r.target}"
    yield from (f"  {line}" for line in forms.told)
    chosen = {**g.options, **{n: str(t) for n, t in g.types.items()}, **g.fixed}
    if chosen:
        yield "  fixed at compile time: " + ", ".join(f"{n} = {spelled(v)}" for n, v in chosen.items())
    yield "  read from the arguments: " + (", ".join(g.dims) or "nothing")


def _kernel(kernel: Kernel, binary: Compiled, problems: tuple[Problem, ...]) -> Iterator[str]:
    yield f"kernel {kernel.name}"
    kind = "persistent, one CTA an SM" if kernel.grid.persistent else "one CTA an item"
    axes = ", ".join(f"{a.index}: {a.blocks}" for a in kernel.grid.axes)
    yield f"  grid      {kind}; items: {axes}"
    added = dict.fromkeys(t for r in kernel.roles for s in walk(r.steps) if (t := _added(kernel, s)))
    if added:
        yield f"  not deterministic: CTAs add to {', '.join(added)} in no order"
    yield from _listed(kernel)
    yield f"  threads   {kernel.threads}"
    for r in binary.kernels:
        spilled = f"{r.spill_stores} + {r.spill_loads} spilled"
        yield f"  compiled  {r.registers} registers at launch, {r.stack} bytes of stack, {spilled}"
    for p in problems:
        yield f"  {p.code}: {p.title()}"
    yield from _shared(kernel)
    for role in kernel.roles:
        yield from _role(kernel, role)
    yield from _barriers(kernel)
    yield from _loops(kernel)


def _listed(kernel: Kernel) -> Iterator[str]:
    """What a kernel lists, or goes through as it is listed."""
    every = [s for r in kernel.roles for s in walk(r.steps)]
    tiles = {a.index: f"{a.tile} of {a.index}" if a.tile > 1 else a.index for a in kernel.grid.axes}
    cols = next((s.cols for s in every if isinstance(s, Classify)), None)
    for tensor in dict.fromkeys(s.tensor for s in every if isinstance(s, ListTile)):
        what = f"tiles of {cols.count} of {cols.index} that aren't empty" if cols else "tiles"
        yield f"  lists     {what}, in {tensor}, for each {', '.join(tiles.values())}"
    read = dict.fromkeys(a.tensor for s in every if isinstance(s, Read) for a in elements(s.value))
    for tensor in (t for t in read if kernel.tensor(t).temporary):
        yield f"  tiles     those that {tensor} lists"


def _added(kernel: Kernel, s: Step) -> str:
    """The tensor that a step adds to; empty if it doesn't."""
    if isinstance(s, TmaStore) and s.add:
        return kernel.map(s.map).tensor
    return s.tensor if isinstance(s, StoreGlobal) and s.add and s.by == "sum" else ""


def _shared(kernel: Kernel) -> Iterator[str]:
    target = TARGETS[kernel.target]
    slack = f" + {target.shared_slack}" if target.shared_slack else ""
    yield f"  shared memory {kernel.shared_bytes}{slack} bytes, of {target.shared_limit}"
    rows = [("buffer", "tile", "parts", "stages", "bytes", "at")]
    for b in kernel.buffers:
        size = f"over {b.over}" if b.over else str(b.total_bytes)
        rows.append((b.name, f"{b.rows} x {b.cols} {b.dtype}", str(b.parts), str(b.stages), size, str(b.offset)))
    count = sum(b.parts * b.stages for b in kernel.barriers)
    first = min((b.offset for b in kernel.barriers), default=0)
    rows.append(("mbarriers", "", "", str(count), str(count * MBARRIER_BYTES), str(first)))
    yield from _table(rows)


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        yield "    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _role(kernel: Kernel, role: Role) -> Iterator[str]:
    own = [v for v in kernel.values if v.role == role.name]
    total, limit = sum(v.registers for v in own), f", of {role.registers}" if role.registers else ""
    who = "one thread" if role.elected else f"{role.count} x 128 threads"
    yield f"  role {role.name}: {who}; {total} registers a thread hold its values{limit}"
    if own:
        yield from _table([("value", "kind", "registers"), *(_value(v) for v in own)])


def _value(v: Value) -> tuple[str, str, str]:
    few = {"row": "one a row", "flag": "one a warp", "count": "one a warp"}
    shape = few.get(v.kind) or f"{v.rows} x {v.cols} {v.dtype}"
    partial = ", a share for each lane" if v.partial else ""
    return v.name, f"{v.kind}, {shape}{partial}", f"over {v.over}" if v.over else str(v.registers)


def _barriers(kernel: Kernel) -> Iterator[str]:
    if kernel.barriers:
        yield "  mbarriers"
        rows = [("name", "arrivals a phase", "parts", "stages")]
        yield from _table([*rows, *((b.name, str(b.count), str(b.parts), str(b.stages)) for b in kernel.barriers)])
    if kernel.named_barriers:
        used = (f"{first} .. {first + count - 1}: {what}" for what, first, count in kernel.named_barriers)
        yield "  named barriers " + "; ".join(used)


def _loops(kernel: Kernel) -> Iterator[str]:
    for role in kernel.roles:
        loops = [s for s in walk(role.steps) if isinstance(s, Loop)]
        for loop in loops:
            mask = f", mask {loop.mask}" if loop.mask.strip("{}") else ""
            yield f"  loop of {role.name}: {loop.var} from {loop.start} to {loop.stop}{mask}"


def _roundings(forms: Forms) -> Iterator[str]:
    yield "rounded on the way (beside the outputs): " + ("; ".join(forms.roles.roundings) or "nothing")


def _nvrtc_seconds(binaries: Mapping[str, Compiled]) -> dict[str, float]:
    return {"nvrtc": sum(b.seconds for b in binaries.values())}


def _times(seconds: Mapping[str, float], binaries: Mapping[str, Compiled]) -> Iterator[str]:
    total, nvrtc = sum(seconds.values()), seconds["nvrtc"]
    cached = " (from the cache: when it was compiled)" if all(b.cached for b in binaries.values()) else ""
    version = next(iter(binaries.values())).nvrtc
    share = f"{100 * nvrtc / total if total else 0:.0f} %"
    yield f"time: {1000 * (total - nvrtc):.0f} ms to the CUDA text, {1000 * nvrtc:.0f} ms in NVRTC {version}{cached}, {share}"
    yield "  " + ", ".join(f"{name} {1000 * t:.1f} ms" for name, t in seconds.items())
