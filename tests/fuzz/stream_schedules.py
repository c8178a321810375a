"""Schedules of random structure for programs whose scores are streamed along their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.choices import Choices

if TYPE_CHECKING:
    from tests.fuzz.streams import Stream

SHARED = {"sm_90a": 225_000, "sm_80": 160_000}
ROOM = {1: 240, 2: 232, 3: 160, 4: 112}  # registers of a thread, by warpgroups
LOAD = {1: 24, 2: 40, 3: 32, 4: 32}
FIXED = 56  # of them for addresses, positions, row values


def schedule(c: Choices, s: Stream, target: str) -> str:
    return f"schedule fuzzed for fuzzed on {target} {{\n" + "\n".join(schedule_lines(c, s, target)) + "\n}\n"


def schedule_lines(c: Choices, s: Stream, target: str) -> list[str]:
    return (_Hopper if target == "sm_90a" else _Ampere)(c, s).lines()


class _Common:
    target: str

    def __init__(self, c: Choices, s: Stream):
        self.c, self.s = c, s
        self.running = s.weights in ("softmax", "sink")
        self.operands = [*(x for pair in s.scores.values() for x in pair), *(v for v, _ in s.values.values())]
        self.rings = dict.fromkeys(self.operands, 1)
        self.staged: dict[str, str] = {}  # result -> what it lies over

    def wide(self, name: str) -> int:
        """Columns of a tile in shared memory, padding counted."""
        width = self.s.widths[self.s.width_of[name]]
        return -(-width // 64) * 64 if width > 32 else -(-width // 16) * 16

    def least(self, name: str) -> int:
        """At least so many columns, however they are padded."""
        return -(-self.s.widths[self.s.width_of[name]] // 16) * 16

    def is_rows(self, name: str) -> bool:
        return any(name == q for q, _ in self.s.scores.values())

    def bytes(self, rows: int, columns: int) -> int:
        total = sum((rows if self.is_rows(x) else columns) * self.wide(x) * 2 * n for x, n in self.rings.items())
        return total + sum(rows * self.wide(x) * self.s.staged[x] for x, over in self.staged.items() if not over)

    def fit(self, rows: int, columns: int) -> None:
        """Shallower rings, then no staging, until shared memory holds all."""
        while self.bytes(rows, columns) > SHARED[self.target]:
            deepest = max(self.rings, key=lambda x: self.rings[x])
            if self.rings[deepest] > 1:
                self.rings[deepest] -= 1
            elif any(not over for over in self.staged.values()):
                self.staged = {x: over for x, over in self.staged.items() if over}
            else:
                return

    def stream(self) -> str:
        return f"stream j{self.c.pick('', ' descending')}{f' split s in {self.c.pick(2, 3, 5)}' if self.s.split else ''}"

    def combine(self) -> list[str]:
        return [f"combine {', '.join(r for _, r in self.s.values.values())} by atomic_add"] if self.s.split else []

    def grid(self, kind: str, order: str) -> str:
        axes = [*self.s.heads, *(["s"] if self.s.split else []), "i"]
        return f"grid {kind}over ({', '.join(self.c.order(axes) if self.c.chance(30) else axes)}){order}"

    def rescale(self, lazy: str) -> list[str]:
        return [f"rescale {acc}{lazy}" for acc in self.s.values] if self.running else []

    def finish(self) -> list[str]:
        results = [r for _, r in self.s.values.values()]
        together = [*results, *self.s.rows]
        if len(self.staged) <= 1 and self.c.chance(70):
            via = "".join(f" via {x}s" for x in self.staged)
            return [f"finish {', '.join(together)}{via}"]
        rest = [x for x in together if x not in self.staged]
        return [*([f"finish {', '.join(rest)}"] if rest else []), *(f"finish {x} via {x}s" for x in self.staged)]

    def homes(self, engine: str, store: str) -> list[str]:
        lines = []
        for x in self.operands:
            ring = f" ring {self.rings[x]}" if self.rings[x] > 1 else ""
            held = self.s.homes.get(x, f"{x}[{'i' if self.is_rows(x) else 'j'}]")
            lines.append(f"smem {x}s = {held} by {engine}{ring}")
        return lines + [f"smem {x}s = {x}[i] by {store}{f' over {over}' if over else ''}" for x, over in self.staged.items()]

    def scored(self, engine: str, at: str) -> list[str]:
        return [f"issue {s}[{at}] = {engine}({q}s, {k}s[{at}])" for s, (q, k) in self.s.scores.items()]

    def multiplied(self, engine: str) -> list[str]:
        return [f"issue {acc} += {engine}(P[j], {v}s[j])" for acc, (v, _) in self.s.values.items()]

    def registers(self, columns: int, share: int = 64) -> int:
        """Of a thread of four warps with `share` rows, roughly."""
        values = sum(self.s.widths[self.s.width_of[v]] for v, _ in self.s.values.values())
        scores = columns * len(self.s.scores) + (columns // 2 if values else 0)
        return (scores + values) * share // 128 + FIXED + self.s.extras + 6 * len(self.s.rows)


class _Hopper(_Common):
    target = "sm_90a"

    def lines(self) -> list[str]:
        c, s = self.c, self.s
        keys = (64, 128, 32, 48, 80, 96, 16, 112)
        fits = [(g, n) for g in (2, 1, 3, 4) for n in keys if self.registers(n) <= ROOM[g]] or [(1, 16)]
        own = c.chance(10) and any(g == 2 for g, _ in fits)  # work items of its own for each warpgroup
        groups = 2 if own else c.pick(*dict.fromkeys(g for g, _ in fits))
        columns = c.pick(*[n for g, n in fits if g == groups])
        rows = 64 if own else 64 * groups
        ahead = bool(s.values) and c.chance(55) and not own
        persistent = own or c.chance(55)
        dynamic = persistent and c.chance(40)
        for x in self.operands:
            self.rings[x] = (2 if own else c.pick(1, 1, 2)) if self.is_rows(x) else c.pick(2, 1, 2, 3, 4)
        self._stage(groups, columns, own)
        self.fit(rows, columns)
        self._recheck(groups)
        sets = ahead and groups < 3 and self.registers(columns) + columns // 4 <= ROOM[groups] and c.chance(15)
        joined = ahead and persistent and c.chance(25) and self._joinable()
        kind = f"persistent {'dynamic ' if dynamic else ''}{'joined ' if joined else ''}" if persistent else ""
        order = c.pick("", " longest_first") if s.causal and not s.split else ""
        if s.heads and c.chance(20):
            order += f" section ({', '.join(s.heads)}) within {c.pick('1 MB', '16 KB')}"
        skip = c.chance(35) and not joined and not own
        loaders = ["load", "load_values"] if s.values and groups < 3 and c.chance(15) else ["load"]
        return [
            f"tile i {rows}, j {columns}",
            self.stream(),
            self.grid(kind, order),
            *self.combine(),
            *(["skip empty per warpgroup"] if skip else []),
            *(f"role {name} : 1 warpgroup, registers {LOAD[groups] if len(loaders) == 1 else 24}" for name in loaders),
            f"role math : {groups} warpgroup{'s' if groups > 1 else ''}, registers {ROOM[groups]}, "
            f"split {'tiles' if own else 'i'}",
            *self.homes("tma", "tma"),
            *(["regs P ring 2"] if sets else []),
            *self._loaders(loaders, ahead, own),
            *self._math(ahead, persistent, own, sets),
        ]

    def _stage(self, groups: int, columns: int, own: bool) -> None:
        c, s = self.c, self.s
        for x, size in s.staged.items():
            if s.split or not c.chance(75):
                continue
            value = next(v for v, r in s.values.values() if r == x)
            first = next(iter(s.scores.values()))[0]
            options = [""]
            if not self.staged and self.wide(x) * size <= self.least(first) * 2:
                options.append(f"{first}s")
            if not self.staged and not own and 64 * self.wide(x) * size <= columns * self.least(value) * 2:
                options.append(f"{value}s")
            self.staged[x] = c.pick(*options)

    def _recheck(self, groups: int) -> None:
        """A part for each warpgroup needs a slot of a ring that it lies in."""
        for x, over in self.staged.items():
            value = next(v for v, r in self.s.values.values() if r == x)
            if over == f"{value}s" and self.rings[value] < groups:
                self.staged[x] = ""

    def _joinable(self) -> bool:
        rows = [q for q, _ in self.s.scores.values()]
        over = {f"{q}s" for q in rows}
        return all(self.rings[q] > 1 for q in rows) and not over & {*self.staged.values()}

    def _loaders(self, names: list[str], ahead: bool, own: bool) -> list[str]:
        c, s = self.c, self.s
        at = "j+1" if ahead else "j"
        rows = [q for q, _ in s.scores.values()]
        keys = [f"fill {k}s[{at}]" for _, k in s.scores.values()]
        values = [f"fill {v}s[j]" for v, _ in s.values.values()]
        rest = ["load_values { for j {", *values, "} }"] if len(names) > 1 else []
        values = [] if rest else values
        if len(rows) == 1 and not own and c.chance(50):
            first, late = f"fill {rows[0]}s.0", f"once {{ fill {rows[0]}s.rest }}"
            return ["load {", first, "for j {", *keys, late, *values, "} }", *rest]
        return ["load {", *(f"fill {q}s" for q in rows), "for j {", *keys, *values, "} }", *rest]

    def _math(self, ahead: bool, persistent: bool, own: bool, sets: bool) -> list[str]:
        c, s = self.c, self.s
        lazy = "" if s.shows_maximum else c.pick("", " when grown by 8", " when grown by 2")
        rescale = self.rescale(lazy)
        turn = "" if own else c.pick("", "issues", "compute")
        rows = [q for q, _ in s.scores.values()]
        over = next(iter(self.staged.values()), "")
        deferred = persistent and not own and len(self.staged) == 1 and over not in {f"{v}s" for v, _ in s.values.values()}
        deferred = deferred and all(self.rings[q] > 1 for q in rows) and c.chance(30)
        wait_store = [f"once {{ await {x}s }}" for x in self.staged] if deferred else []
        if ahead:
            score, value = self.scored("wgmma", "j+1"), self.multiplied("wgmma")
            issues = [*score, *value] if c.chance(70) else [*value, *score]
            body = [
                *_turn(issues, turn == "issues"),
                *wait_store,
                *(f"await {x}[j+1]" for x in s.scores),
                *_turn(["compute P[j+1]"], turn == "compute"),
                *(["pack P[j+1]"] if sets else []),
                *(f"await {x}[j]" for x in s.values),
                *([] if sets else ["pack P[j+1]"]),
                *rescale,
            ]
        else:
            compute = "compute P[j]" if s.values else f"compute {s.rows[0]}[j]"
            after = [*rescale, "pack P[j]"] if c.chance(50) else ["pack P[j]", *rescale]
            last = f"compute {s.apart}[j]" if s.apart and c.chance(60) else ""
            compute, late = (compute, last) if c.chance(70) or not s.values else (last or compute, compute if last else "")
            body = [
                *_turn(self.scored("wgmma", "j"), turn == "issues"),
                *wait_store,
                *(f"await {x}[j]" for x in s.scores),
                *_turn([compute], turn == "compute"),
                *([late] if late else []),
                *(after if s.values else []),
                *self.multiplied("wgmma"),
                *(f"await {x}[j]" for x in s.values),
            ]
        loop = _turn(["for j {", *body, "}"], own)
        return ["math {", *(f"await {q}s" for q in rows), *loop, *self.finish(), "}"]


def _turn(steps: list[str], wanted: bool) -> list[str]:
    return ["in turn {", *steps, "}"] if wanted else steps


class _Ampere(_Common):
    target = "sm_80"

    def lines(self) -> list[str]:
        c, s = self.c, self.s
        keys = (64, 32, 96, 48, 16)
        shapes = ((4, 64), (4, 128), (8, 128), (8, 256))
        fits = [(w, m, n) for w, m in shapes for n in keys if self.registers(n, m * 4 // w) <= 250] or [(8, 128, 16)]
        warps, rows = c.pick(*dict.fromkeys((w, m) for w, m, _ in fits))
        columns = c.pick(*[n for w, m, n in fits if (w, m) == (warps, rows)])
        first = next(iter(s.scores.values()))[0]
        for x, size in s.staged.items():
            if not s.split and c.chance(70):
                fits_over = not self.staged and self.wide(x) * size <= self.least(first) * 2
                self.staged[x] = c.pick(f"{first}s", "") if fits_over else ""
        for x in self.operands:
            self.rings[x] = 1 if self.is_rows(x) else c.pick(1, 2)
        self.fit(rows, columns)
        order = c.pick("", " longest_first") if s.causal and not s.split else ""
        return [
            f"tile i {rows}, j {columns}",
            self.stream(),
            self.grid(c.pick("", "", "persistent "), order),
            *self.combine(),
            f"role math : {warps} warps, registers 255, split i",
            *self.homes("cp_async", "copy"),
            *self._math(),
        ]

    def _math(self) -> list[str]:
        c, s = self.c, self.s
        keys = [k for _, k in s.scores.values()]
        values = [v for v, _ in s.values.values()]
        weigh = ["compute P[j]", *self.rescale(""), "pack P[j]"] if s.values else [f"compute {s.rows[0]}[j]"]
        fill_values = [f"fill {v}s[j]" for v in values]
        scored = self.scored("mma", "j")
        deep = all(self.rings[k] > 1 for k in keys)
        way = c.index(3)
        if way == 0:
            body = [*(f"fill {k}s[j]" for k in keys), *fill_values, *scored, *weigh]
        elif way == 1 and deep:
            body = [*(f"await {k}s[j]" for k in keys), *(f"fill {k}s[j+1]" for k in keys), *fill_values, *scored, *weigh]
        else:
            waits = [f"await {v}s[j]" for v in values]
            ahead = [f"fill {k}s[j+1]" for k in keys]
            body = [*(f"await {k}s[j]" for k in keys), *fill_values, *scored, *waits, *ahead, *weigh]
        rows = [f"fill {q}s" for q, _ in s.scores.values()]
        return ["math {", *rows, "for j {", *body, *self.multiplied("mma"), "}", *self.finish(), "}"]
