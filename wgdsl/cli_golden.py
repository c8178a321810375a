"""`wgdsl golden ...`: arguments in, calls of `tools.golden` and `tools.proving`, text out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from .tools.golden import State
    from .tools.manifest import Folder, Golden

app = typer.Typer(no_args_is_help=True, help="Golden CUDA texts: kept beside their `.wg` files, in the folder `golden`.")

Paths = Annotated[list[Path] | None, typer.Argument(help="`.wg` files, or folders of goldens", show_default=False)]
Record = Annotated[Path | None, typer.Option("--record", metavar="FILE", help="another record of GPU runs")]
HOMES = (Path("golden"), Path("tests/golden"))  # where goldens are looked for if nothing is named


@app.command()
def check(paths: Paths = None) -> None:
    """Emit every golden again and show what differs. Writes nothing; fails if anything differs."""
    from .tools.golden import states

    found = [s for folder, goldens in _selected(paths) for s in states(folder, goldens)]
    wrong = [s for s in found if not s.current]
    for s in wrong:
        typer.echo(f"{s.kind} {s.path}")
        typer.echo(str(s.error) if s.error is not None else s.diff(), nl=s.error is not None)
    typer.echo(f"{len(found) - len(wrong)} of {len(found)} as they are emitted now")
    if wrong:
        raise typer.Exit(1)


@app.command()
def update(
    paths: Paths = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE ...", help="of a new golden")] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", metavar="NAME|FILE", help="of a new golden")] = None,
    program: Annotated[str | None, typer.Option("--program", metavar="NAME", help="of a new golden")] = None,
    dims: Annotated[list[str] | None, typer.Option("--dims", metavar="M=512 ...", help="of the run that proves it")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="of a new golden")] = None,
) -> None:
    """Write what is emitted now: every golden of a file, or with `--set` and the like the one that they describe."""
    from .tools.golden import adopted, updated
    from .tools.manifest import folder_of

    new = set_ or schedule or program or dims or name
    if new and not paths:
        raise typer.BadParameter("name the `.wg` file of the golden that `--set` and the like describe")
    selected: list[tuple[Folder, tuple[Golden, ...]]] = []
    for p in paths or []:
        if p.is_file() and (new or not folder_of(p).of(p)):
            made = adopted(p, settings=set_ or [], schedule=schedule, program=program, dims=dims or [], name=name)
            selected.append(made)
        else:
            selected += _selected([p])
    if not paths:
        selected = _selected(None)
    whole = True
    for folder, goldens in selected:
        lines, complete = updated(folder, goldens)
        whole &= complete
        for line in lines:
            typer.echo(line)
    if not whole:
        raise typer.Exit(1)


@app.command()
def status(paths: Paths = None, record: Record = None) -> None:
    """List which goldens are proven on a GPU, not yet run, stale, or unused."""
    from .tools.golden import PROVEN, folders_below, states, unused
    from .tools.manifest import read_folder

    found: list[State] = []
    for folder, goldens in _selected(paths):
        found += states(folder, goldens, record)
    for path in (p for home in _homes(paths) if home.is_dir() for p in folders_below(home)):
        found += unused(read_folder(path), record)
    for s in found:
        ran = f"  {s.record.card}, {s.record.date}, {s.record.runs} runs" if s.record is not None else ""
        typer.echo(f"{s.kind:<12}{s.path if s.path.suffix == '.cu' else s.name}{ran}")
    kinds = dict.fromkeys((PROVEN, *sorted({s.kind for s in found})))
    typer.echo(", ".join(f"{sum(s.kind == k for s in found)} {k}" for k in kinds))


@app.command()
def prove(
    paths: Paths = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="a GPU run is killed after that")] = 60.0,
    watched: Annotated[int | None, typer.Option("--watched", hidden=True)] = None,
) -> None:
    """Run goldens on the GPU, check them against float64, and record those that were right beside them."""
    from .tools import hardware
    from .tools.golden import states
    from .tools.proving import prove as prove_one
    from .tools.watch import report_to
    from .tools.watch import watched as run_watched

    selected = _selected(paths)
    card = hardware.find_card()
    if card is not None and watched is None:
        raise typer.Exit(run_watched(sys.argv[1:], timeout))
    report_to(watched)
    right = True
    for folder, goldens in selected:
        for g, s in zip(goldens, states(folder, goldens), strict=True):
            proof = prove_one(folder, g, s, card)
            right &= proof.right
            for line in proof.lines():
                typer.echo(line)
    if not right:
        raise typer.Exit(1)


def _homes(paths: list[Path] | None) -> list[Path]:
    return paths or [next((h for h in HOMES if h.is_dir()), HOMES[0])]


def _selected(paths: list[Path] | None) -> list[tuple[Folder, tuple[Golden, ...]]]:
    """The goldens that the arguments name, by folder. Raises WgError for an argument that names none."""
    from .tools.golden import folders_below
    from .tools.manifest import chosen

    wide = [q for p in _homes(paths) for q in (folders_below(p) if p.is_dir() else [p]) or [p]]
    return [chosen(p) for p in wide]
