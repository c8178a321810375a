"""What a schedule costs and does, as numbers under names: the rows that `wgdsl diff` compares.

In: a kernel of the role program (and its cubin's text).  Out: sections of rows, in a fixed order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields

from ..roles import model as m
from ..roles.model import Kernel, Role, Step, walk
from ..runtime.log import Resources
from ..runtime.machine_code import read_code
from ..targets.choice import TARGETS
from ..targets.mbarrier import MBARRIER_BYTES

Rows = dict[str, int | str]
Sections = dict[str, Rows]

EVENTS = {
    "waits": (m.Wait,),
    "arrivals": (m.Arrive,),
    "expected fills": (m.Expect,),
    "copies in": (m.Tma, m.CopyAsync),
    "copy groups": (m.CommitCopies,),
    "copy waits": (m.WaitCopies,),
    "copies out": (m.TmaStore,),
    "products": (m.Wgmma, m.Mma),
    "product waits": (m.WaitGroup,),
    "named barrier waits": (m.BarSync,),
    "named barrier arrivals": (m.BarArrive,),
}
OPCODES = (
    "HGMMA", "WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR", "HMMA", "MUFU.EX2", "UTMALDG", "UTMASTG", "LDGSTS", "LDSM", "STSM", "LDL",
    "STL", "R2UR",
)  # fmt: skip


def measured(k: Kernel) -> Sections:
    """Every section of one kernel."""
    out: Sections = {"launch": _launch(k), "shared memory, bytes": _shared(k), "mbarriers": _barriers(k)}
    for r in k.roles:
        values = [v for v in k.values if v.role == r.name]
        if values:
            out[f"registers a thread of {r.name}"] = _registers(r, values)
        out[f"events of {r.name}, in the text"] = _events(walk(r.steps))
        loops = [s for s in walk(r.steps) if isinstance(s, m.Loop)]
        if loops:
            out[f"events of {r.name}, in an iteration"] = _iterations(loops)
        products = Counter(s.acc for s in walk(r.steps) if isinstance(s, m.Wgmma | m.Mma))
        if products:
            out[f"copies of each product of {r.name}"] = dict(products)
        out[f"steps of {r.name}"] = _steps(r)
    return out


def _grid(g: m.Grid) -> str:
    if g.dynamic:
        return "persistent, items from a counter"
    return "persistent" if g.persistent else "one CTA an item"


def _order(o: m.Order) -> str:
    """The axes from the slowest to the fastest; the inner ones go by sections."""
    outer = [f"{i} from its end" if i == o.reversed else i for i in o.outer]
    return ", ".join([*outer, *o.inner]) + (f", in sections of {o.size}" if o.size is not None else "")


def _launch(k: Kernel) -> Rows:
    rows: Rows = {"grid": _grid(k.grid)}
    if k.grid.order is not None:
        rows["items in order"] = _order(k.grid.order)
    rows["threads"] = k.threads
    rows |= {f"items along {a.index}": str(a.blocks) for a in k.grid.axes}
    for r in k.roles:
        rows[f"{r.name}"] = f"{r.count} x 128 threads" + (", one of each works" if r.elected else "")
    for what, _, count in k.named_barriers:
        rows[f"named barriers: {what}"] = count
    return rows


def _shared(k: Kernel) -> Rows:
    rows: Rows = {b.name: f"over {b.over}" if b.over else b.total_bytes for b in k.buffers}
    rows["barriers"] = MBARRIER_BYTES * sum(b.parts * b.stages for b in k.barriers)
    target = TARGETS[k.target]
    rows["alignment of the base"] = target.shared_slack
    rows["in all"] = target.shared_bytes(k.shared_bytes)
    return rows


def _barriers(k: Kernel) -> Rows:
    rows: Rows = {b.name: f"{b.parts} x {b.stages}, {b.count} arrivals a phase" for b in k.barriers}
    rows["in all"] = sum(b.parts * b.stages for b in k.barriers)
    return rows


def _registers(r: Role, values: list[m.Value]) -> Rows:
    rows: Rows = {v.name: f"over {v.over}" if v.over else v.registers for v in values}
    rows["in all"] = sum(v.registers for v in values)
    rows["of"] = r.registers or "what the launch grants"
    return rows


def _events(steps: Iterator[Step]) -> Rows:
    every = list(steps)
    counts = {name: sum(isinstance(s, kinds) for s in every) for name, kinds in EVENTS.items()}
    return {name: n for name, n in counts.items() if n}


def _iterations(loops: list[m.Loop]) -> Rows:
    """What one iteration does: of each loop in the text where they differ (`2 / 3`)."""
    found = [_events(walk(loop.body)) for loop in loops]
    out: Rows = {}
    for name in EVENTS:
        counts = [rows.get(name, 0) for rows in found]
        if any(counts):
            out[name] = counts[0] if len(set(counts)) == 1 else " / ".join(map(str, counts))
    return out


def _steps(r: Role) -> Rows:
    counts = Counter(type(s).__name__ for s in walk(r.steps))
    return {**dict(sorted(counts.items())), "in all": sum(counts.values())}


def resources(r: Resources) -> Rows:
    """What the assembler says of a kernel."""
    kept = {f.name for f in fields(r)} - {"name", "target", "shared", "complaints"}
    rows: Rows = {name.replace("_", " "): getattr(r, name) for name in sorted(kept)}
    if r.complaints:
        rows["complaints"] = ", ".join(f"C{c.number}" if c.number else c.text for c in r.complaints)
    return rows


def instructions(sass: str) -> Rows:
    """How many instructions of each kind that matters stand in a kernel's machine code."""
    code = read_code(sass).instructions
    rows: Rows = {name: sum(i.named(name) for i in code) for name in OPCODES}
    return {**{n: c for n, c in rows.items() if c}, "in all": len(code)}


def together(a: Mapping[str, Rows], b: Mapping[str, Rows]) -> Iterator[tuple[str, Rows, Rows]]:
    """Sections of both, in the order of the first."""
    for name in dict.fromkeys([*a, *b]):
        yield name, a.get(name, {}), b.get(name, {})
