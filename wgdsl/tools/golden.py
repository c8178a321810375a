"""`wgdsl golden check|update|status`: the CUDA texts of schedules, kept and compared.

In: folders or `.wg` files.  Out: how each golden stands against what is emitted today and against the record of GPU runs.
A text is proven by the SHA-256 of its bytes alone: one that changes has to run again, whoever wrote it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ..diagnostics.model import WgError
from ..driver import Journal, prepare
from ..runtime.kernel import Kernel
from ..settings import pairs, sort_settings
from . import hardware
from .manifest import MANIFEST, Folder, Golden, folder_of

PROVEN, NOT_RUN, STALE, MISSING, BROKEN, UNUSED = "proven", "not yet run", "stale", "missing", "broken", "unused"


@dataclass(frozen=True, kw_only=True)
class State:
    """How one golden stands. `kernel`: what is emitted today, None if nothing is; `error` says why."""

    name: str
    path: Path
    kind: str
    kernel: Kernel | None = None
    held: str = ""
    error: WgError | None = None
    record: hardware.Record | None = None

    @property
    def current(self) -> bool:
        """Whether the golden is what is emitted today."""
        return self.kind in (PROVEN, NOT_RUN)

    def diff(self) -> str:
        """From the golden to what is emitted today; empty if they are the same."""
        new = self.kernel.cuda if self.kernel is not None else ""
        names = (f"{self.path}", f"{self.path} (emitted now)")
        rows = difflib.unified_diff(self.held.splitlines(), new.splitlines(), *names, lineterm="")
        return "".join(f"{row}\n" for row in rows)


def emitted(folder: Folder, g: Golden) -> Kernel:
    """The kernel as it is made today, not built. Its text doesn't depend on where it is made. Raises WgError."""
    kernel, journal = prepare(
        folder.source(g),
        program=g.program,
        schedule=folder.schedule(g),
        settings=lambda found: sort_settings(found, g.settings),
    )
    return placeless(kernel, journal)


def placeless(kernel: Kernel, journal: Journal) -> Kernel:
    """The kernel with `#line` naming files by their names alone, wherever they lie; shipped files keep their place in the
    project, which is the same everywhere."""
    own = [s.path for s in journal.sources if Path(s.path).exists() and not s.path.startswith(("schedules/", "examples/"))]

    def plain(text: str) -> str:
        for path in own:
            text = text.replace(f' "{path}"\n', f' "{Path(path).name}"\n')
        return text

    return Kernel(replace(kernel.forms, texts={n: plain(t) for n, t in kernel.forms.texts.items()}))


def state_of(folder: Folder, g: Golden, records: dict[str, hardware.Record]) -> State:
    """How a golden stands. What the user has to mend in the files that it is made of is kept in `error`."""
    path = folder.text_path(g)
    try:
        kernel = emitted(folder, g)
    except WgError as e:
        held = path.read_text("utf-8") if path.exists() else ""
        return State(name=g.name, path=path, kind=BROKEN, held=held, error=e)
    if not path.exists():
        return State(name=g.name, path=path, kind=MISSING, kernel=kernel)
    held = path.read_text("utf-8")
    if held != kernel.cuda:
        return State(name=g.name, path=path, kind=STALE, kernel=kernel, held=held)
    record = records.get(hardware.digest(held))
    kind = PROVEN if record is not None else NOT_RUN
    return State(name=g.name, path=path, kind=kind, kernel=kernel, held=held, record=record)


def states(folder: Folder, goldens: Iterable[Golden] | None = None, record: Path | None = None) -> list[State]:
    """All of a folder, or the named ones. `record`: another file of records."""
    records = hardware.load(record or folder.record_path)
    return [state_of(folder, g, records) for g in (folder.goldens if goldens is None else goldens)]


def unused(folder: Folder, record: Path | None = None) -> list[State]:
    """Texts that no golden names, and records of texts that are no golden."""
    known = {folder.text_path(g) for g in folder.goldens}
    left = [p for p in sorted(folder.path.glob("*.cu")) if p not in known]
    found = [State(name=p.stem, path=p, kind=UNUSED) for p in left]
    held = {hardware.digest(p.read_text("utf-8")) for p in known if p.exists()}
    records = hardware.load(record or folder.record_path)
    where = record or folder.record_path
    return found + [
        State(name=f"record of {row.kernel} ({key[:12]})", path=where, kind=UNUSED)
        for key, row in records.items()
        if key not in held
    ]


def updated(folder: Folder, goldens: Iterable[Golden]) -> tuple[list[str], bool]:
    """Write what is emitted today. Lines to print, and whether all could be written."""
    goldens, lines, whole = tuple(goldens), [], True
    for s in states(folder, goldens):
        if rewrite(folder, s):
            lines.append(f"wrote {s.path}")
        elif s.error is not None:
            whole = False
            lines.append(f"{s.kind} {s.path}: left as it is\n{s.error}")
    now = states(folder, goldens)
    lines += [f"not yet proven on a GPU: {s.path}" for s in now if s.kind == NOT_RUN]
    proven = sum(s.kind == PROVEN for s in now)
    return [*lines, f"{proven} of {len(now)} proven; `wgdsl golden prove` runs the others"], whole


def rewrite(folder: Folder, state: State) -> bool:
    """Write what is emitted today; whether that changed anything. A golden that can't be emitted stays as it is."""
    if state.kernel is None or state.current:
        return False
    folder.path.mkdir(parents=True, exist_ok=True)
    state.path.write_text(state.kernel.cuda, "utf-8")
    return True


def adopted(
    path: Path,
    *,
    settings: list[str],
    schedule: str | None = None,
    program: str | None = None,
    dims: list[str] | None = None,
    name: str | None = None,
) -> tuple[Folder, tuple[Golden, ...]]:
    """A golden of a `.wg` file, added to the folder beside it, or changed there; its text is still to be written.

    Raises WgError for what can't be compiled.
    """
    folder = folder_of(path)
    fixed = pairs(settings)
    kernel, journal = prepare(path, program=program, schedule=schedule, settings=lambda f: sort_settings(f, settings))
    own = schedule is not None and Path(schedule).is_file()
    g = Golden(
        name=name or name_of(kernel, fixed),
        file=relative(path, folder.path),
        schedule=relative(Path(str(schedule)), folder.path) if own else journal.schedule,
        program=program,
        settings=tuple(f"{n}={v}" for n, v in fixed),
        dims=(tuple(f"{n}={v}" for n, v in pairs(dims)),) if dims else (),
    )
    folder = folder.with_golden(g)
    folder.save()
    return folder, (g,)


def relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def name_of(kernel: Kernel, settings: Iterable[tuple[str, str]]) -> str:
    """`linear-simple-bf16-d128-no_causal`: program, schedule and what was fixed."""
    words = [kernel.graph.name, kernel.roles.schedule]
    for name, value in settings:
        if value in ("true", "false"):
            words.append(name if value == "true" else f"no_{name}")
        else:
            words.append(f"{name.lower()}{value}" if value.isdigit() else value)
    return "-".join(words)


def folders_below(path: Path) -> list[Path]:
    """The folders of goldens in a folder: itself, or those below it."""
    return [path] if (path / MANIFEST).exists() else sorted(p.parent for p in path.rglob(MANIFEST))
