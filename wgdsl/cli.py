"""The command line: arguments in, one call of the driver or of a tool, text out.

Exit codes: 0; 1 a user's mistake, or a result that isn't right; 69 no device or compiler; 70 a defect of wgdsl; 130
interrupted.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from . import __version__, cli_golden
from .diagnostics.model import EnvironmentFault, InternalError, WgError
from .forms import COMPILED, EMITS

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(cli_golden.app, name="golden")

OK, USER, ENVIRONMENT, INTERNAL = 0, 1, 69, 70
SEVERAL = ("--set", "--dims")  # options that take every NAME=VALUE after them

File = Annotated[Path, typer.Argument(help="a `.wg` file", show_default=False)]
Files = Annotated[list[Path], typer.Argument(help="`.wg` files", show_default=False)]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE ...", help="an option, a dim or a type")]
Program = Annotated[str | None, typer.Option("--program", metavar="NAME", help="which, if the file holds several")]
Schedule = Annotated[str | None, typer.Option("--schedule", metavar="NAME|FILE", help="default: the best there is (`choose`)")]
Target = Annotated[str, typer.Option("--target", metavar="ARCH", help="`wgdsl targets` lists them; auto: this GPU's")]
Out = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="write there instead")]
Passes = Annotated[list[str] | None, typer.Option("--print-after", metavar="PASS", help="print the form that this pass made")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wgdsl {__version__}")
        raise typer.Exit(OK)


@app.callback()
def whole_program(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")] = False,
) -> None:
    """What precedes every command."""


@app.command()
def check(
    files: Files,
    set_: Set = None,
    program: Program = None,
    schedule: Schedule = None,
    target: Target = "auto",
) -> None:
    """Look for mistakes: every program under each schedule of its file, or one under the schedule and dims that are given."""
    from .tools.checking import check_file

    checked = [check_file(path, set_ or [], program, schedule, target) for path in files]
    for note in (note for c in checked for note in c.notes):
        typer.echo(note)
    problems = [p for c in checked for p in c.problems]
    if problems:
        raise WgError(problems)


@app.command()
def fmt(
    files: Files, check: Annotated[bool, typer.Option("--check", help="change nothing; fail if something would")] = False
) -> None:
    """Format files in place."""
    from .tools.formatting import format_files

    changed = format_files(files, write=not check)
    for path in changed:
        typer.echo(f"{'would change' if check else 'formatted'} {path}")
    if check and changed:
        raise typer.Exit(USER)


@app.command()
def compile(
    file: File,
    set_: Set = None,
    emit: Annotated[str, typer.Option("--emit", metavar="|".join((*EMITS, *COMPILED)), help="what to print")] = "report",
    program: Program = None,
    schedule: Schedule = None,
    target: Target = "auto",
    print_after: Passes = None,
    output: Out = None,
) -> None:
    """Compile a program under a schedule, and print one of its forms."""
    from .tools.emitting import emitted

    _write(emitted(_prepared(file, set_, program, schedule, target, print_after), emit), output)


@app.command()
def explain(
    file: File,
    set_: Set = None,
    program: Program = None,
    schedule: Schedule = None,
    target: Target = "auto",
    output: Out = None,
) -> None:
    """Print the role program: every step of every role, every event with its numbers."""
    from .tools.emitting import emitted

    _write(emitted(_prepared(file, set_, program, schedule, target), "roles"), output)


@app.command()
def verify(
    file: File,
    set_: Set = None,
    mutate: Annotated[bool, typer.Option("--mutate", help="also verify copies with one event broken")] = False,
    sample: Annotated[int | None, typer.Option("--sample", metavar="N", help="so many of them, one of a kind at least")] = None,
    seed: Annotated[int, typer.Option("--seed", help="which of them")] = 0,
    simulate: Annotated[int, typer.Option("--simulate", metavar="N", help="run those that may pass in N orders of events")] = 0,
    program: Program = None,
    schedule: Schedule = None,
    target: Target = "auto",
    output: Out = None,
) -> None:
    """Prove that a schedule's synchronisation is right; with `--mutate`, see that the proof notices what is wrong."""
    from .tools.verifying import Request, verify

    request = Request(mutate=mutate, sample=sample, seed=seed, simulate=simulate)
    found = verify(lambda: _prepared(file, set_, program, schedule, target), request, typer.echo)
    _write("".join(f"{line}\n" for line in found.lines), output)
    if not found.right:
        raise typer.Exit(USER)


@app.command()
def run(
    file: File,
    set_: Set = None,
    dims: Annotated[list[str] | None, typer.Option("--dims", metavar="B=2,M=512 ...", help="the dims of this call")] = None,
    device: Annotated[str, typer.Option("--device", metavar="auto|gpu|sim|reference", help="where to run")] = "auto",
    check: Annotated[bool, typer.Option("--check", help="compare with float64 on the same inputs")] = False,
    time: Annotated[bool, typer.Option("--time", help="time it, on a GPU")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="of the random inputs (default 0), and of the simulator's order of events")
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="timed launches")] = 30,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="a GPU run is killed after that")] = 20.0,
    cuda: Annotated[
        Path | None, typer.Option("--cuda", metavar="FILE", help="run this text in place of the emitted one")
    ] = None,
    probe: Annotated[list[str] | None, typer.Option("--probe", metavar="'P[j]'", help="look at the tiles of a value")] = None,
    probe_out: Annotated[Path | None, typer.Option("--probe-out", metavar="FILE.npz", help="what probes have seen")] = None,
    timeline: Annotated[
        Path | None, typer.Option("--timeline", metavar="FILE.json", help="note the SM's clock at every step, on a GPU")
    ] = None,
    program: Program = None,
    schedule: Schedule = None,
    target: Target = "auto",
    print_after: Passes = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE.npz", help="inputs and results")] = None,
    watched: Annotated[int | None, typer.Option("--watched", hidden=True)] = None,
) -> None:
    """Run a kernel on random inputs: on the GPU, in the simulator, or in float64."""
    from .tools.running import Request, perform
    from .tools.watch import report_to

    report_to(watched)
    if timeline is not None and (cuda or probe or time or check):
        raise typer.BadParameter("`--timeline` runs a text of its own: without `--cuda`, `--probe`, `--time`, `--check`")
    prepared = _prepared(file, set_, program, schedule, target, print_after, probe, dims)
    request = Request(
        dims=tuple(dims or ()),
        device=device,
        check=check,
        repeats=repeats if time else 0,
        seed=seed,
        cuda=cuda,
        output=output,
        timeout=timeout if watched is None else None,
        probe_out=probe_out,
        probed=bool(probe) or probe_out is not None,
        timeline=timeline,
    )
    lines, right = perform(*prepared, request, sys.argv[1:])
    for line in lines:
        typer.echo(line)
    if not right:
        raise typer.Exit(USER)


@app.command()
def supports(
    file: File,
    set_: Set = None,
    program: Program = None,
    schedule: Schedule = None,
    target: Target = "auto",
    build: Annotated[bool, typer.Option("--build", help="also let NVRTC make the binary")] = False,
    form: Annotated[str, typer.Option("--format", metavar="text|json", help="of the answer")] = "text",
) -> None:
    """Say whether a program can be compiled under a schedule for a target: exit code 0; or 1, and why not."""
    from .tools.asking import answer

    text, yes = answer(file, set_ or [], program, schedule, target, build=build, form=form)
    typer.echo(text, nl=False)
    if not yes:
        raise typer.Exit(USER)


@app.command()
def tune(
    file: File,
    set_: Set = None,
    dims: Annotated[
        list[str] | None, typer.Option("--dims", metavar="B=2,M=512 ...", help="the dims of a call, or several")
    ] = None,
    program: Program = None,
    schedule: Annotated[str | None, typer.Option("--schedule", metavar="A,B,...", help="default: all that there are")] = None,
    target: Target = "auto",
    most: Annotated[int, typer.Option("--most", metavar="N", help="candidates that are timed, the best by the model")] = 40,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="for each call")] = 120.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="processes that compile; default: all cores")] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="a candidate's run is killed after that")
    ] = 20.0,
    into: Annotated[
        Path | None, typer.Option("--into", metavar="FILE.json", help="the table; default: beside the program")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="also measure what the table has")] = False,
    list_: Annotated[bool, typer.Option("--list", help="list what `tune` blocks leave open; without `--dims` too")] = False,
) -> None:
    """Find the fastest schedule for calls of some sizes, and write the times to the table from which schedules are chosen."""
    from .tools.tune import Request
    from .tools.tuning import listing, tuned
    from .tools.workers import cores

    request = Request(
        file=file,
        dims=tuple(dims or ()),
        program=program,
        schedules=schedule,
        settings=tuple(set_ or ()),
        target=target,
        most=most,
        seconds=seconds,
        jobs=cores() if jobs is None else jobs,
        into=into,
        again=again,
        command=f"wgdsl {shlex.join(sys.argv[1:])}",
    )
    if list_ or not dims:
        typer.echo(listing(request), nl=False)
        return
    code = tuned(request, timeout, typer.echo)
    if code:
        raise typer.Exit(code)


@app.command("time-candidates", hidden=True)
def time_candidates(contest: Path, journal: Path) -> None:
    """The process of `tune` that works on the GPU."""
    from .tools.gpu_stopwatch import run_contest

    run_contest(contest, journal)


@app.command()
def choose(
    file: File,
    set_: Set = None,
    dims: Annotated[list[str] | None, typer.Option("--dims", metavar="B=2,M=512 ...", help="the lengths of a call")] = None,
    program: Program = None,
    target: Target = "auto",
) -> None:
    """List the schedules for a program, the best first, with what was measured of them, and the one that is taken."""
    from .tools.choosing import choice_text

    typer.echo(choice_text(file, set_ or [], dims or [], program, target), nl=False)


@app.command()
def bench(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SUITE ...] | show FILE", help="default: every suite", show_default=False),
    ] = None,
    head_dims: Annotated[str | None, typer.Option("--head-dims", metavar="64,128", help="only these")] = None,
    masks: Annotated[str | None, typer.Option("--masks", metavar="full,causal", help="only these")] = None,
    dtypes: Annotated[str | None, typer.Option("--dtypes", metavar="bf16,f16", help="only these")] = None,
    lengths: Annotated[str | None, typer.Option("--lengths", metavar="512,1024", help="only these")] = None,
    cases: Annotated[str, typer.Option("--cases", metavar="NAME,...", help="only those whose name begins so")] = "",
    schedule: Annotated[
        list[str] | None,
        typer.Option("--schedule", metavar="NAME|FILE", help="may be repeated; default: the chosen one"),
    ] = None,
    peers: Annotated[
        str | None, typer.Option("--peers", metavar="FA3,cuDNN", help="`all`: whoever is here; default: the usual of a suite")
    ] = None,
    fa3_site: Annotated[
        Path | None, typer.Option("--fa3-site", metavar="DIR", help="where flash_attn_3/_C.so is, FlashAttention-3")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="ARCH", help="default: this GPU's, or the suite's")] = None,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", help="turns of every contestant")] = 5,
    ms: Annotated[float, typer.Option("--ms", metavar="MS", help="milliseconds of calls in a turn")] = 12.0,
    seed: Annotated[int | None, typer.Option("--seed", help="of the inputs; default: a new one")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="processes that compile; default: all cores")] = None,
    budget: Annotated[float, typer.Option("--budget", metavar="SECONDS", help="for all of it")] = 900.0,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="without an end counts as hanging")] = 60.0,
    jsonl: Annotated[Path | None, typer.Option("--jsonl", metavar="FILE", help="the results, line by line")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.svg", help="a picture of it")] = None,
) -> None:
    """Time the kernels of this project beside those of others on the same inputs; `show` says again what a file holds."""
    from .bench import bench as benches
    from .bench.request import Request, command_of, fresh_seed
    from .bench.request import words as listed
    from .tools.workers import cores

    suites = tuple(words or ())
    if suites[:1] == ("show",):
        if len(suites) != 2:
            raise typer.BadParameter("`show` takes one file")
        raise typer.Exit(benches.show(Path(suites[1]), plot, typer.echo))
    filters = {"--head-dims": head_dims, "--masks": masks, "--dtypes": dtypes, "--lengths": lengths}
    request = Request(
        suites=suites,
        filters={option: listed(text) for option, text in filters.items()},
        cases=listed(cases) or ("",),
        schedules=tuple(schedule or ()),
        peers=listed(peers),
        target=target,
        fa3_site=str(fa3_site.resolve()) if fa3_site is not None else None,
        rounds=rounds,
        ms=ms,
        budget=budget,
        timeout=timeout,
        jobs=cores() if jobs is None else jobs,
        seed=fresh_seed() if seed is None else seed,
        command=command_of(sys.argv[1:]),
    )
    code = benches.bench(request, jsonl, plot, typer.echo)
    if code:
        raise typer.Exit(code)


@app.command("time-contestants", hidden=True)
def time_contestants(plan: Path, journal: Path) -> None:
    """The process of `bench` that works on the GPU."""
    from .bench.arena import run_match

    run_match(plan, journal)


@app.command()
def diff(
    words: Annotated[list[str], typer.Argument(metavar="[FILE] A B", help="FILE: the program's; A, B: names or `.wg` files")],
    set_: Set = None,
    program: Program = None,
    changed: Annotated[bool, typer.Option("--changed", help="only the rows that differ")] = False,
    text: Annotated[bool, typer.Option("--text", help="also the difference of their role texts")] = False,
    sass: Annotated[bool, typer.Option("--sass", help="also what the assembler made of them")] = False,
    output: Out = None,
) -> None:
    """Compare two schedules of one program: memory, registers, events, steps, launch."""
    from .tools.differing import diff_text, kernels
    from .tools.pairing import paired

    if len(words) not in (2, 3):
        raise typer.BadParameter("two schedules, and perhaps the program's file before them")
    _write(diff_text(*kernels(paired(words, program), set_ or []), every=not changed, text=text, sass=sass), output)


@app.command()
def retarget(
    words: Annotated[list[str], typer.Argument(metavar="[FILE] SCHEDULE", help="FILE: the program's; a name or a `.wg` file")],
    to: Annotated[str, typer.Option("--to", metavar="ARCH", help="sm_80, sm_86, sm_89 or sm_120")],
    set_: Annotated[list[str] | None, typer.Option("--set", "--dims", metavar="NAME=VALUE ...", help="what is fixed")] = None,
    program: Program = None,
    form: Annotated[str, typer.Option("--format", metavar="text|json", help="of the report")] = "text",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="write the schedule there")] = None,
) -> None:
    """Turn a Hopper schedule into an Ampere one, and say what became of each directive and why."""
    from .tools.retargeting import retarget_texts

    if len(words) not in (1, 2):
        raise typer.BadParameter("one schedule, and perhaps the program's file before it")
    report, text = retarget_texts(words, to, set_ or [], program, form)
    typer.echo(report, nl=False)
    if output is not None:
        output.write_text(text)
    elif form == "text":
        typer.echo("\n" + text, nl=False)


@app.command()
def compare(
    file: File,
    schedules: Annotated[str, typer.Option("--schedules", metavar="A,B,...", help="names or `.wg` files: a column each")],
    set_: Set = None,
    dims: Annotated[list[str] | None, typer.Option("--dims", metavar="B=2,M=512 ...", help="of timed calls")] = None,
    program: Program = None,
    form: Annotated[str, typer.Option("--format", metavar="text|json|md", help="of the table")] = "text",
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="a GPU round is killed after that")] = 20.0,
    output: Out = None,
    watched: Annotated[int | None, typer.Option("--watched", hidden=True)] = None,
) -> None:
    """Compare how schedules of one program use the matrix engine: instructions, issue slots, operands, registers, overlap."""
    from .tools.comparing import Request, compare
    from .tools.comparison_text import comparison_text, known, terminal
    from .tools.watch import report_to

    known(form)
    report_to(watched)
    request = Request(
        file=file,
        schedules=schedules,
        settings=tuple(set_ or ()),
        dims=tuple(dims or ()),
        program=program,
        timeout=timeout if watched is None else None,
    )
    found = compare(request, sys.argv[1:])
    if isinstance(found, int):
        raise typer.Exit(found)
    _write(comparison_text(found, form, terminal() if output is None else None), output)


@app.command()
def timeline(
    file: File,
    set_: Set = None,
    dims: Annotated[list[str] | None, typer.Option("--dims", metavar="B=2,M=512 ...", help="the dims of the call")] = None,
    program: Program = None,
    schedule: Schedule = None,
    target: Target = "auto",
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="draw a picture there")] = None,
    beside: Annotated[
        list[Path] | None, typer.Option("--beside", metavar="TRACE", help="draw this one too, which `-o` has written")
    ] = None,
    start: Annotated[float, typer.Option("--from", metavar="CYCLE", help="where the picture begins")] = 0.0,
    cycles: Annotated[float, typer.Option("--cycles", metavar="N", help="how much the picture shows")] = 8000.0,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="a trace for ui.perfetto.dev")] = None,
) -> None:
    """Predict, by a model of the chip's cycles, what every role and engine does when, how long it takes, and who waits."""
    from .tools.timelines import Request, timelines

    request = Request(
        dims=tuple(dims or ()), output=output, svg=svg, beside=tuple(beside or ()), window=(start, start + cycles)
    )
    for line in timelines(_prepared(file, set_, program, schedule, target, dims=dims), request):
        typer.echo(line)


@app.command()
def targets() -> None:
    """List the architectures: engines, limits, and the steps that are emitted for each."""
    from .tools.targets import targets_text

    typer.echo(targets_text(), nl=False)


@app.command("help")
def help_(code: Annotated[str, typer.Argument(help="for example WG0203; without it, all are listed")] = "") -> None:
    """Explain an error code."""
    from .diagnostics.catalogue import help_text, list_text

    try:
        typer.echo(help_text(code) if code else list_text(), nl=False)
    except LookupError as e:
        typer.echo(f"error: {e.args[0]}", err=True)
        raise typer.Exit(USER) from None


def _prepared(
    file: Path,
    set_: list[str] | None,
    program: str | None,
    schedule: str | None,
    target: str,
    print_after: list[str] | None = None,
    probe: list[str] | None = None,
    dims: list[str] | None = None,
) -> tuple[Any, Any]:
    from .driver import prepare
    from .settings import numbers, sort_settings
    from .tools.emitting import print_forms
    from .tools.probes import with_probes

    kernel, journal = prepare(
        file,
        program=program,
        schedule=schedule,
        target=target,
        settings=lambda found: sort_settings(found, set_ or []),
        edit=lambda s: with_probes(s, probe or []),
        lengths=numbers(dims or []),
    )
    print_forms(journal, print_after or [])
    return kernel, journal


def _write(what: str | bytes, output: Path | None) -> None:
    if output is not None:
        output.write_bytes(what if isinstance(what, bytes) else what.encode())
    elif isinstance(what, bytes):
        sys.stdout.buffer.write(what)
    else:
        typer.echo(what, nl=False)


def spread(arguments: list[str]) -> list[str]:
    """`--set a=1 b=2` as `--set a=1 --set b=2`: every NAME=VALUE after `--set` or `--dims` belongs to it."""
    out: list[str] = []
    setting = ""
    for word in arguments:
        if word in SEVERAL:
            setting = word
        elif out and out[-1] not in SEVERAL:
            if setting and "=" in word and not word.startswith("-"):
                out.append(setting)
            else:
                setting = ""
        out.append(word)
    return out


def main(arguments: list[str] | None = None) -> None:
    """The entry point: runs a command and exits with its code. A user's mistake never shows a traceback."""
    sys.exit(_run(spread(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    try:
        code = app(arguments, standalone_mode=False)
        return code if isinstance(code, int) else OK
    except Exception as e:
        return _failed(e, arguments)


def _failed(e: Exception, arguments: list[str]) -> int:
    """Say what is wrong; the exit code of its family."""
    if isinstance(e, WgError):
        _complain(e)
        return USER
    if isinstance(e, EnvironmentFault):
        typer.echo(f"error: {e}", err=True)
        return ENVIRONMENT
    if isinstance(e, InternalError):
        typer.echo(f"internal error: {e}", err=True)
        return INTERNAL
    if isinstance(e, OSError):
        typer.echo(f"error: {e}", err=True)
        return USER
    show = getattr(e, "show", None)
    if show is not None:  # a mistake in the arguments: click's exception, or the copy of it inside typer
        show()
        return USER
    if type(e).__name__ in ("Abort", "Exit"):
        return getattr(e, "exit_code", USER)
    from .crash import write_bundle

    folder = write_bundle(e, {}, {"arguments": arguments})
    typer.echo(f"internal error: {type(e).__name__}: {e}\n  what is needed to look into it is in {folder}", err=True)
    return INTERNAL


def _complain(e: WgError) -> None:
    from .diagnostics.render import render_all, render_rich

    if not sys.stderr.isatty():
        typer.echo(render_all(e.problems), err=True)
        return
    from rich.console import Console

    console = Console(stderr=True)
    for problem in e.problems:
        console.print(render_rich(problem))
