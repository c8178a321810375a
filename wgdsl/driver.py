"""The whole pipeline, in one place: `.wg` text -> forms -> CUDA text -> kernel.

`lower` is the list of passes. Every form is kept by the name of the pass that made it, for `--emit` and `--print-after`, and
every pass is timed. What escapes that is neither a user's nor the environment's fault becomes an InternalError with a bundle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from .diagnostics.model import EnvironmentFault, InternalError, Problem, WgError
from .diagnostics.runtime import DimsToFix
from .diagnostics.schedule import AxisNotCovered, ExtentNotFixed
from .fitting import fitted
from .foundation.resources import table_files
from .foundation.source import Source
from .measured.field import Field
from .measured.nearest import Ranked, Shape
from .measured.nominal import nominal
from .measured.pick import NoneLegal, Picker, Refusal
from .measured.places import files_beside, rows_of
from .resolve.settle import share_out
from .resolve.tuning import Choice
from .runtime import lowered
from .runtime.call import Interface
from .runtime.choosing import Choosing
from .runtime.kernel import Forms, Kernel
from .sources import Found, Open, find, find_open, is_text
from .syntax import ast
from .syntax.candidate import candidate, is_candidate
from .syntax.lines import Explicit
from .targets.choice import TARGETS, Wanted, number, resolve, serves
from .targets.cycles import MACHINES

TRIAL_SIZES = (128, 64)  # of a dim that has to be fixed: what `mended` tries
UNFIXED = (AxisNotCovered, ExtentNotFixed)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the caller fixes at compile time."""

    options: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)


class Journal:
    """The forms of one compilation in the order in which they were made, and how long each took."""

    def __init__(self, sources: tuple[Source, ...] = (), settings: Settings | None = None):
        self.sources = list(sources)
        self.settings = settings or Settings()
        self.forms: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.schedule = ""  # as it was named, or chosen

    def step(self, name: str, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run a pass; keep its form and its time under its name."""
        start = time.perf_counter()
        self.forms[name] = work(*args, **named)
        self.seconds[name] = time.perf_counter() - start
        return self.forms[name]


def lower(found: Found, settings: Settings, journal: Journal) -> Forms:
    """The passes, in order. Raises WgError for what the user has to mend."""
    from .emit import emit_program, entry_name
    from .verify import check

    step = journal.step
    graph, streamed, roles = (written if isinstance(found.schedule, Explicit) else derived)(found, settings, journal)
    # Nothing is emitted or simulated that the verifier hasn't accepted.
    checked = step("verify", check, roles)
    texts = step("emit", emit_program, checked.program)
    return Forms(
        graph=graph,
        stream=streamed,
        roles=checked.program,
        texts=texts,
        entries={k.name: entry_name(k) for k in checked.program.kernels},
        backends=_backends(graph, checked),
        seconds=journal.seconds,
        choices=_choices(found.program),
        told=found.told,
    )


def derived(found: Found, settings: Settings, journal: Journal) -> tuple[Any, Any, Any]:
    """The program graph, the streamed graph (of each kernel, if there are several), and the schedule's role program."""
    from .analyse.analyse import analyse
    from .resolve.resolve import resolve as resolve_schedule
    from .roles.join import joined
    from .schedule.lower import lower as lower_schedule
    from .schedule.lower import stream_axis
    from .transform.approximate import approximate, noted
    from .transform.canonicalise import canonicalise
    from .transform.cut import cut, roundings, whole_schedules
    from .transform.fuse import fuse
    from .transform.reciprocals import reciprocals
    from .transform.stream import stream

    step = journal.step
    for s in whole_schedules(found.schedule):  # before all else: a schedule for nothing shouldn't wait for the program
        stream_axis(s)
    options, own = share_out(found.program, found.schedule, settings.options)
    graph = step("analyse", analyse, found.program, options=options, types=settings.types, dims=settings.dims)
    # The numbers of a schedule may name what the analysis has settled: options and fixed dims.
    schedule, _ = step("resolve", resolve_schedule, found.schedule, found.program, graph, own)
    # One kernel may compare what another computes.
    products = step("reciprocals", reciprocals, graph)
    # Each kernel is a program of its own from here on: what one makes another only loads.
    pieces = step("cut", cut, products, schedule)
    # The schedule's lines name fused indices: from here on there are no others.
    fused = step("fuse", each, fuse, [p.graph for p in pieces], [p.schedule for p in pieces])
    # The online rewrite needs opened sugar and factors outside reductions: canonicalise first.
    canonical = step("canonicalise", each, canonicalise, fused)
    # Behind the normal form, in which numbers are exact.
    near = step("approximate", each, approximate, canonical, [p.schedule for p in pieces])
    axes = [stream_axis(p.schedule) for p in pieces]
    streamed = step("stream", each, stream, near, *zip(*axes, strict=True))
    lowered = step("lower", each, lower_schedule, streamed, [p.schedule for p in pieces])
    roles = joined(lowered, [p.temporary for p in pieces], schedule.name, (*roundings(pieces), *noted(near)))
    return graph, streamed[0] if len(streamed) == 1 else streamed, roles


def written(found: Found, settings: Settings, journal: Journal) -> tuple[Any, None, Any]:
    """The same for an explicit form, which says its role program: nothing is streamed."""
    from .analyse.analyse import analyse
    from .roles.read import read_roles

    assert isinstance(found.schedule, Explicit)
    graph = journal.step("analyse", analyse, found.program, options=settings.options, types=settings.types, dims=settings.dims)
    return graph, None, journal.step("lower", read_roles, found.schedule, graph)


def held(found: Found, given: Settings) -> Settings:
    """The settings, with the options that were named with the schedule. An explicit form holds for its own alone: raises
    WgError (WG1109) for others."""
    if not isinstance(found.schedule, Explicit):
        return replace(given, options={**given.options, **found.options})
    from .roles.settings import conflicts, settings_of

    own = settings_of(found.schedule, found.program)
    problems = conflicts(found.schedule, own, {**given.options, **given.types, **given.dims})
    if problems:
        raise WgError(problems)
    return Settings(**own)


def each(work: Callable[..., Any], *columns: Sequence[Any]) -> tuple[Any, ...]:
    """A pass over the kernels of a schedule."""
    return tuple(work(*row) for row in zip(*columns, strict=True))


@dataclass(frozen=True, kw_only=True)
class Space:
    """What a schedule leaves to a tuner: its `choices`; and its program's graph under the settings."""

    found: Found
    graph: Any
    choices: tuple[Choice, ...]


def space(
    given: str | Path,
    *,
    program: str | None = None,
    schedule: str | Path | None = None,
    target: str | None = None,
    settings: Callable[[Found], Settings],
) -> Space:
    """What the `tune` blocks of a schedule leave open. Raises WgError for names and values that can't be."""
    from .analyse.analyse import analyse
    from .resolve.resolve import resolve as resolve_schedule

    journal = Journal()
    with guarded(journal):
        found = find(given, program=program, schedule=schedule, wanted=wanted(target))
        journal.sources, journal.settings = list(found.sources), held(found, settings(found))
        options, own = share_out(found.program, found.schedule, journal.settings.options)
        graph = analyse(found.program, options=options, types=journal.settings.types, dims=journal.settings.dims)
        explicit = isinstance(found.schedule, Explicit)  # which says every number, and leaves none open
        choices = () if explicit else resolve_schedule(found.schedule, found.program, graph, own)[1]
        return Space(found=found, graph=graph, choices=choices)


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """How long the kernels of a schedule will take in all by the cycle model of the target, None if it has none; and the
    settings with the dims that had to be fixed."""

    settings: Settings
    seconds: float | None


def outlook(
    given: str | Path,
    *,
    program: str | None,
    schedule: str,
    target: str,
    settings: Settings,
    dims: Mapping[str, int],
) -> Outlook:
    """What to expect of a schedule in a call with these dims, before the verifier has looked at its events. Dims that the
    schedule needs fixed are fixed as they are in the call. Raises WgError."""
    from .verify import check_structure

    journal = Journal()
    with guarded(journal):
        found = find(given, program=program, schedule=schedule, wanted=wanted(target))
        journal.sources, journal.settings = list(found.sources), held(found, settings)
        graph, roles = _fixing(found, journal, dims)
        check_structure(roles)
        return Outlook(settings=journal.settings, seconds=_seconds(graph, roles, dims))


def _fixing(found: Found, journal: Journal, dims: Mapping[str, int]) -> tuple[Any, Any]:
    """The graph and the role program; dims that have to be fixed for it are, in the journal's settings."""
    while True:
        try:
            graph, _, roles = (written if isinstance(found.schedule, Explicit) else derived)(found, journal.settings, journal)
            return graph, roles
        except WgError as e:
            known = journal.settings.dims
            new = {n: dims[n] for n in _unfixed(found, journal.settings, e) if n in dims and n not in known}
            if not new:
                raise
            journal.settings = replace(journal.settings, dims={**known, **new})


def _seconds(graph: Any, roles: Any, dims: Mapping[str, int]) -> float | None:
    if roles.target not in MACHINES:
        return None
    return _all_cycles(graph, roles, dims, roles.target) / MACHINES[roles.target].clock.value / 1e9


def _all_cycles(graph: Any, roles: Any, dims: Mapping[str, int], machine: str) -> float:
    """Of a call by the cycle model of a target, which may be an earlier one of the family."""
    from .sim.launched import predict_cycles

    kernels = (replace(k, target=machine) for k in roles.kernels)
    return sum(predict_cycles(k, _free(graph, dims), frozenset(graph.increasing)) for k in kernels)


def wanted(target: str | None) -> Wanted:
    """What a caller's `target` asks for: `auto` is the GPU of this machine, None whatever the schedule is written for. Raises
    WgError (WG0653) for what is no target."""
    from .runtime import cuda

    if target is None:
        return Wanted()
    named = resolve(target)
    return Wanted(named=named, gpu=cuda.gpu() if named is None else None)


def _backends(graph: Any, checked: Any) -> dict[str, Any]:
    def simulated(
        arrays: Any, scalars: Any, dims: Mapping[str, int], seed: int | None = None, roles: Any = None
    ) -> Mapping[str, Any]:
        """roles: some of the kernels alone, if not all."""
        from .sim import simulate

        return simulate(
            checked if roles is None else replace(checked, program=roles), arrays, scalars, _free(graph, dims), seed=seed
        )

    def evaluated(arrays: Any, scalars: Any, dims: Mapping[str, int]) -> Mapping[str, Any]:
        from .reference.evaluate import evaluate

        return evaluate(graph, arrays, scalars, _free(graph, dims))

    return {"sim": simulated, "reference": evaluated}


def orders_of(kernel: Kernel, seed: int) -> dict[str, str]:
    """The order of events that a seed means in the simulator, in words, for each kernel by its name."""
    from .sim.orders import order_of

    return {k.name: str(order_of(seed, k)) for k in kernel.roles.kernels}


def _free(graph: Any, dims: Mapping[str, int]) -> dict[str, int]:
    return {name: dims[name] for name in graph.dims if name in dims}


def explored(roles: Any) -> tuple[Any, ...]:
    """What the verifier goes into for each kernel of a role program. Raises WgError (WG07xx) if it doesn't accept it."""
    from .verify import verify

    return verify(roles)


def verified(roles: Any) -> Any:
    """A role program that no schedule has made, as the verifier accepts it. Raises WgError (WG07xx) if it doesn't."""
    from .verify import check

    return check(roles)


def simulated(roles: Any, arrays: Any, scalars: Any, dims: Mapping[str, int], seed: int | None = None) -> Mapping[str, Any]:
    """What a role program computes in the simulator, whatever the verifier says of it. Raises WgError (WG08xx) for a fault."""
    from .sim import simulate_unchecked

    return simulate_unchecked(roles, arrays, scalars, dims, seed=seed)


def predicted(kernel: Kernel, dims: Mapping[str, int]) -> tuple[Any, ...]:
    """How long each kernel of a schedule takes by the cycle model of its target, which has one."""
    from .sim.launched import predict

    return tuple(predict(k, _free(kernel.graph, dims), frozenset(kernel.graph.increasing)) for k in kernel.roles.kernels)


def timed(kernel: Kernel) -> tuple[Kernel, dict[str, str]]:
    """The same kernel with texts that note the clock (`roles.marks`), and the array of each text that holds the notes."""
    from .emit import emit_program, marks_name

    texts = emit_program(kernel.roles, timed=True)
    return Kernel(replace(kernel.forms, texts=texts), kernel.cache), {k.name: marks_name(k) for k in kernel.roles.kernels}


def prepare(
    given: str | Path,
    *,
    program: str | None = None,
    schedule: str | Path | None = None,
    target: str | None = None,
    settings: Settings | Callable[[Found], Settings] | None = None,
    edit: Callable[[ast.Schedule], ast.Schedule] | None = None,
    lengths: Mapping[str, int] | None = None,
) -> tuple[Kernel, Journal]:
    """A kernel whose CUDA text is made but not compiled, and its journal. `settings` may depend on the program found; `edit`
    changes the schedule before it is lowered. Without a target the text is the same on every machine. Without a schedule it is
    the best there is for what is fixed, and for the `lengths` of a call as far as they are known."""
    made = partial(prepare_under, given, program=program, target=target, settings=settings, edit=edit)
    if schedule is not None:
        return made(schedule)
    with guarded(Journal()):
        there = field_for(given, program=program, target=target, settings=settings)
        if there.alone:
            return made(there.names[0])
        picker = there.picker(partial(made, trial=True))
        pick = picked(there, made, partial(picker.pick, lengths or {}))
        return _telling(pick.made[0], there.told(pick, lengths or {})), pick.made[1]


def _telling(kernel: Kernel, lines: tuple[str, ...]) -> Kernel:
    """The same kernel; its report says more of how it was chosen."""
    return Kernel(replace(kernel.forms, told=(*lines, *kernel.forms.told)), kernel.cache)


def prepare_under(
    given: str | Path,
    schedule: str | Path,
    *,
    program: str | None = None,
    target: str | None = None,
    settings: Settings | Callable[[Found], Settings] | None = None,
    edit: Callable[[ast.Schedule], ast.Schedule] | None = None,
    trial: bool = False,
) -> tuple[Kernel, Journal]:
    """The same under a schedule. trial: nobody looks for what would help if it can't be compiled."""
    journal = Journal()
    with guarded(journal):
        start = time.perf_counter()
        found = find(given, program=program, schedule=schedule, wanted=wanted(target))
        found = replace(found, schedule=edit(found.schedule)) if edit is not None else found
        journal.sources, journal.schedule = list(found.sources), str(schedule)
        journal.forms["parse"], journal.seconds["parse"] = found, time.perf_counter() - start
        journal.settings = held(found, (settings(found) if callable(settings) else settings) or Settings())
        try:
            forms = lower(found, journal.settings, journal)
        except WgError as e:
            if trial:
                raise
            if not any(isinstance(p, UNFIXED) for p in e.problems):
                raise WgError(proposing(journal, e)) from e
            raise WgError(mended(found, journal.settings, e)) from e
        return Kernel(forms), journal


def field_for(
    given: str | Path,
    *,
    program: str | None = None,
    target: str | None = None,
    settings: Settings | Callable[[Found], Settings] | None = None,
) -> Field:
    """The schedules for a program and what was measured of them, remembered. Raises WgError as `find` does, for what is wrong
    with the program, and for tables that are none (WG0660)."""
    kept = wanted(target)
    fixed = _fixed(given, program, kept, settings) if callable(settings) else settings or Settings()
    attempt = partial(_attempted, given, target=target, settings=fixed, program=program)
    tables = [*table_files(), *(() if is_text(given) else files_beside(Path(given)))]
    asked = _request(given, None, (program, kept, fixed), tables)
    return lowered.remembered(
        asked, lambda: _field(find_open(given, program=program, wanted=kept), fixed, kept, attempt), lambda found: found.texts
    )


def _fixed(given: str | Path, program: str | None, kept: Wanted, settings: Callable[[Found], Settings]) -> Settings:
    """What is fixed, as the first of the schedules has it that takes it. Raises WgError if none does."""
    failed: WgError | None = None
    there = find_open(given, program=program, wanted=kept)
    for s in there.schedules:
        try:
            return settings(Found(program=there.program, schedule=s, sources=there.sources))
        except WgError as e:
            failed = failed or e
    assert failed is not None, "there is a schedule"
    raise failed


def _field(there: Open, fixed: Settings, kept: Wanted, attempt: Callable[[str], tuple[Kernel, Journal]]) -> Field:
    from .analyse.analyse import analyse

    rows = rows_of(there.program.name, there.target, there.path, shipped=there.shipped)
    texts = (*(s.text for s in there.sources), *dict.fromkeys(m.text for m in rows))
    found = Field(program=there.program.name, target=there.target, names=there.names, texts=texts, rows=rows)
    if found.alone:
        return found
    own = {d.name for d in there.program.items if isinstance(d, ast.OptionDecl)}
    options = {n: v for n, v in fixed.options.items() if n in own}
    graph = analyse(there.program, options=options, types=fixed.types, dims=fixed.dims)
    shape = Shape(
        types={n: t.name for n, t in graph.types.items()},
        options=graph.options,
        fixed=graph.fixed,
        card=kept.gpu.name if kept.gpu is not None else "",
    )
    return replace(
        found,
        shape=shape,
        rest=tuple(Ranked(candidate=n) for n in there.names) if rows else _by_model(there.names, attempt),
        graph=graph,
        choices=_choices(there.program),
    )


def _choices(program: ast.Program) -> dict[str, tuple[str, ...]]:
    return {d.name: d.choices for d in program.items if isinstance(d, ast.TypeDecl)}


def _by_model(names: Sequence[str], attempt: Callable[[str], tuple[Kernel, Journal]]) -> tuple[Ranked, ...]:
    """The schedules that can be compiled, the quickest first by the cycle model, at a call of middling size; then the others,
    and those of which the model says nothing, as they were found."""
    picker = Picker((), (), Shape(), attempt)
    tried = {n: picker.tried(n) for n in names}
    legal = {n: made[0] for n, made in tried.items() if not isinstance(made, Refusal)}
    cycles: dict[str, float] = {}
    if len(legal) > 1:
        first = next(iter(legal.values()))
        dims = {**nominal(first.roles, first.graph.dims), **first.graph.fixed}
        cycles = {n: c for n, k in legal.items() if (c := _cycles(k, dims)) is not None}
    ranked = [Ranked(candidate=n, cycles=cycles[n]) for n in sorted(cycles, key=lambda n: cycles[n])]
    refused = {n: made.why for n, made in tried.items() if isinstance(made, Refusal)}
    return (*ranked, *(Ranked(candidate=n, refused=refused.get(n, "")) for n in names if n not in cycles))


def _cycles(kernel: Kernel, dims: Mapping[str, int]) -> float | None:
    """Those of a call by the model of the target, or of the latest before it of its family; None if neither has one."""
    machine = max((t for t in MACHINES if serves(t, kernel.target)), key=number, default=None)
    return None if machine is None else _all_cycles(kernel.graph, kernel.roles, dims, machine)


def picked(there: Field, made: Callable[[str], Any], pick: Callable[[], Any]) -> Any:
    """What `pick` takes. Raises WgError if every candidate is refused."""
    try:
        return pick()
    except NoneLegal as e:
        open_ = {r.candidate for r in e.refusals if any(isinstance(p, UNFIXED) for p in r.problems)}
        for name in (n for n in there.names if n in open_):
            made(name)  # which says what has to be fixed
        raise there.refused(e.refusals) from None


def mended(found: Found, settings: Settings, failed: WgError) -> list[Problem]:
    """What to say in place of "its extent isn't fixed": the dims with which the schedule can be lowered, if there are any; else
    the same, and what is wrong beside it.

    Only a trial tells a dim that has to be fixed from an index that the schedule forgot.
    """
    beside: tuple[Problem, ...] = ()
    for size in TRIAL_SIZES:
        problem: WgError | None = failed
        dims: dict[str, int] = {}
        while problem is not None:
            new = _unfixed(found, replace(settings, dims={**settings.dims, **dims}), problem)
            dims |= dict.fromkeys(new, size)
            if not new:
                break
            problem = _trial(found, replace(settings, dims={**settings.dims, **dims}))
        if problem is None:
            ordered = {
                n: dims[n] for d in found.program.items if isinstance(d, ast.DimsDecl) for n, _ in d.entries if n in dims
            }
            return [DimsToFix(span=found.schedule.span, schedule=found.schedule.name, dims=ordered)]
        beside = tuple(p for p in problem.problems if dims and not isinstance(p, UNFIXED))
    return [*failed.problems, *beside]


def proposing(journal: Journal, failed: WgError) -> list[Problem]:
    """The problems; those of placement with the nearest schedules that fit, which are tried on the forms of the journal."""
    if "stream" not in journal.forms:
        return list(failed.problems)
    kernels = zip(journal.forms["cut"], journal.forms["stream"], strict=True)  # the numbers of their schedules are literals
    wrong = [(p.schedule, streamed) for p, streamed in kernels if not _lowers(streamed, p.schedule)]
    if len(wrong) != 1:  # a change of one kernel doesn't mend another
        return list(failed.problems)
    schedule, streamed = wrong[0]
    return fitted(schedule, failed.problems, lambda s: _lowers(streamed, s))


def _lowers(streamed: Any, schedule: ast.Schedule) -> bool:
    """Whether another schedule along the same axis can be lowered, and passes the checks."""
    try:
        placed(streamed, schedule)
    except WgError:
        return False
    return True


def placed(streamed: Any, schedule: ast.Schedule) -> Any:
    """The role program of another schedule along the same axis, whose counts and budgets are right but whose events nobody has
    looked at. Raises WgError."""
    from .schedule.lower import lower as lower_schedule
    from .verify import check_structure

    roles = lower_schedule(streamed, schedule)
    check_structure(roles)
    return roles


def pieces(journal: Journal) -> Iterator[tuple[ast.Schedule, Any]]:
    """The kernels of a lowered schedule: the schedule of each, all its numbers settled, and its streamed graph."""
    for piece, streamed in zip(journal.forms["cut"], journal.forms["stream"], strict=True):
        yield piece.schedule, streamed


def _trial(found: Found, settings: Settings) -> WgError | None:
    try:
        lower(found, settings, Journal())
    except WgError as e:
        return e
    return None


def _unfixed(found: Found, settings: Settings, failed: WgError) -> list[str]:
    """The dims of the extents that the problems miss; none if another problem is among them."""
    from .analyse.analyse import analyse

    if not all(isinstance(p, UNFIXED) for p in failed.problems):
        return []
    options, _ = share_out(found.program, found.schedule, settings.options)
    graph = analyse(found.program, options=options, types=settings.types, dims=settings.dims)
    indices = [p.index for p in failed.problems if isinstance(p, AxisNotCovered | ExtentNotFixed)]
    return sorted({s for i in indices if i in graph.extents for s in graph.extents[i].symbols()})


def lowered_steps() -> dict[str, frozenset[str]]:
    """Target -> the steps of role programs that are emitted for it; every step has an entry for each target that has any."""
    from .emit import lowered as emitted

    return {t: frozenset(step.__name__ for step in emitted(t)) for t in TARGETS}


def check_program(program: ast.Program, source: Source) -> None:
    """Analyse a program by itself: its dims symbolic, options and types as declared. Raises WgError."""
    from .analyse.analyse import analyse

    with guarded(Journal((source,))):
        analyse(program)


def compile(
    given: str | Path,
    schedule: str | Path | None = None,
    target: str = "auto",
    dims: Mapping[str, int] | None = None,
    types: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    program: str | None = None,
    build: bool = True,
) -> Kernel:
    """Compile a program under a schedule.

    given: the path of a `.wg` file, or its text.  schedule: the name of one of that file's, of its folder's or of the shipped
    schedules for this program; or the path of a `.wg` file; each perhaps with values in braces, as `wgdsl tune` writes them;
    or a text; by default the one that was measured to be the fastest for what is fixed and, where they matter, the lengths of
    each call.  target: `sm_90a` and the like; or `auto`, the GPU of this machine, or without one what the schedule is written
    for.  dims, types, options: what is fixed at compile time; other dims are read from the arguments of each call.  program:
    which, if the file holds several.  build: False puts NVRTC off until the binary is needed, which the simulator never does;
    where lengths matter, `pick(M=4096).build()` does it for one.

    Raises WgError for mistakes in the texts or in these arguments, EnvironmentFault without NVRTC.
    """
    settings = Settings(options=dict(options or {}), types=dict(types or {}), dims=dict(dims or {}))
    made = partial(_kernel, given, target=target, settings=settings, program=program)
    if schedule is not None:
        kernel, journal = made(schedule)
    else:
        kernel, journal = _chosen(given, target, settings, program, made)
    if build and journal is not None:
        with guarded(journal):
            kernel.build()
    return kernel


def _kernel(
    given: str | Path, schedule: str | Path, *, target: str | None, settings: Settings, program: str | None, trial: bool = False
) -> tuple[Kernel, Journal]:
    """A kernel under a schedule, remembered."""

    def made() -> tuple[Forms, Journal]:
        kernel, journal = prepare_under(given, schedule, program=program, target=target, settings=settings, trial=trial)
        return replace(kernel.forms, backends={}), journal  # these two can be pickled

    with guarded(Journal()):
        asked = _request(given, schedule, (program, wanted(target), settings))
    forms, journal = lowered.remembered(asked, made, lambda kept: (s.text for s in kept[1].sources))
    return Kernel(replace(forms, backends=_backends(forms.graph, journal.forms["verify"]))), journal


def _attempted(
    given: str | Path, schedule: str, *, target: str | None, settings: Settings, program: str | None
) -> tuple[Kernel, Journal]:
    """The same as a trial, of which a refusal is remembered too."""
    kernel = partial(_kernel, given, schedule, target=target, settings=settings, program=program, trial=True)

    def refused() -> tuple[tuple[Problem, ...], tuple[Source, ...]]:
        sources = find(given, program=program, schedule=schedule, wanted=wanted(target)).sources
        try:
            kernel()
        except WgError as e:
            return e.problems, sources
        return (), sources

    asked = _request(given, schedule, ("refused", program, wanted(target), settings))
    problems, _ = lowered.remembered(asked, refused, lambda kept: (s.text for s in kept[1]))
    if problems:
        raise WgError(problems)
    return kernel()


def _chosen(
    given: str | Path, target: str, settings: Settings, program: str | None, made: Callable[..., tuple[Kernel, Journal]]
) -> tuple[Kernel, Journal | None]:
    """The kernel under the best schedule, with its journal; where lengths matter, one that chooses at each call."""
    with guarded(Journal()):
        there = field_for(given, program=program, target=target, settings=settings)
        if there.alone:
            return made(there.names[0])
        attempt = partial(_attempted, given, target=target, settings=settings, program=program)
        picker = there.picker(attempt)
        settled = picked(there, made, picker.settled)
        if settled is not None:
            return _telling(settled.made[0], there.told(settled, {})), settled.made[1]
        assert there.graph is not None, "there is something to choose"
        told = lambda dims: there.told(picker.pick(dims), dims)  # noqa: E731
        return Choosing(Interface(there.graph, there.choices), lambda dims: picker.pick(dims).made[0], told), None


def chosen(
    given: str | Path, *, program: str | None = None, target: str, settings: Settings, lengths: Mapping[str, int]
) -> str:
    """The candidate that `compile` takes for a call of these lengths where none is named."""
    with guarded(Journal()):
        there = field_for(given, program=program, target=target, settings=settings)
        if there.alone:
            return there.names[0]
        picker = there.picker(partial(_attempted, given, target=target, settings=settings, program=program))
        under = partial(_kernel, given, target=target, settings=settings, program=program)
        return picked(there, under, partial(picker.pick, lengths)).candidate


def _request(
    given: str | Path, schedule: str | Path | None, others: tuple[Any, ...], tables: Sequence[Path] = ()
) -> lowered.Request | None:
    """What tells one compilation from another. tables: files beside the `.wg` files that it depends on."""
    named = candidate(str(schedule)).schedule if is_candidate(schedule) else schedule
    texts = [str(x) for x in (given, named) if is_text(x)]
    files = [] if is_text(given) else [Path(given)]
    if named is not None and not is_text(named) and str(named).endswith(".wg"):
        files.append(Path(named))
    words = [repr((others, str(given), str(schedule), Path.cwd() if files else ""))]
    return lowered.request(words, texts, [*files, *tables], None if is_text(given) else Path(given).parent)


@contextmanager
def guarded(journal: Journal) -> Iterator[None]:
    """Turn whatever is nobody else's fault into an InternalError with a crash bundle."""
    try:
        yield
    except (WgError, EnvironmentFault):
        raise
    except InternalError as e:
        if e.bundle is not None:
            raise
        raise _bundled(e, journal) from e
    except Exception as e:
        raise _bundled(e, journal) from e


def _bundled(e: Exception, journal: Journal) -> InternalError:
    from . import crash
    from .forms import texts_of

    files: dict[str, Callable[[], str] | str] = {f"source{n}.wg": s.text for n, s in enumerate(journal.sources)}
    files |= texts_of(journal.forms)
    s = journal.settings
    facts = {"options": dict(s.options), "types": dict(s.types), "dims": dict(s.dims), "passes": list(journal.forms)}
    folder = crash.write_bundle(e, files, facts)
    what = str(e) or type(e).__name__
    return InternalError(
        f"{type(e).__name__}: {what}\n  this is a defect of wgdsl; what is needed to look into it is in {folder}", str(folder)
    )
