"""`wgdsl timeline`: what the cycle model says of a kernel, as lines, as a trace and as a picture.

In: a kernel and the dims of a call.  Out: lines to print; files on demand. `docs/performance.md` has the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..diagnostics.model import WgError
from ..diagnostics.tools import NoCycleModel
from ..driver import Journal, guarded, predicted
from ..roles.timeline import Predicted
from ..runtime.bind import whole
from ..runtime.kernel import Kernel
from ..settings import numbers
from ..targets.cycles import MACHINES
from .running import every_dim
from .timeline_svg import picture
from .timeline_text import timeline_lines
from .trace_events import read_trace, trace_text
from .work import work


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `wgdsl timeline` was asked. beside: traces that the picture shows too. window: the cycles that it shows."""

    dims: tuple[str, ...] = ()
    output: Path | None = None
    svg: Path | None = None
    beside: tuple[Path, ...] = ()
    window: tuple[float, float] = (0.0, 8000.0)


def timelines(prepared: tuple[Kernel, Journal], request: Request) -> list[str]:
    """Lines to print; writes the files that are asked for. Raises WgError (WG1012) for a target without a model."""
    kernel, journal = prepared
    dims = {name: whole(name, size) for name, size in every_dim(kernel, numbers(request.dims)).items()}
    others = [t for path in request.beside for t in read_trace(path)]
    with guarded(journal):
        found = predict(kernel, dims)
    shown = [p.timeline for p in found]
    if request.output is not None:
        request.output.write_text(trace_text(shown), "utf-8")
    if request.svg is not None:
        request.svg.write_text(picture([*shown, *others], request.window), "utf-8")
    return list(_lines(kernel, dims, found))


def predict(kernel: Kernel, dims: Mapping[str, int]) -> tuple[Predicted, ...]:
    """Of every kernel of the schedule. dims: every one. Raises WgError (WG1012) for a target without a model."""
    if kernel.target not in MACHINES:
        raise WgError(NoCycleModel(target=kernel.target, known=tuple(MACHINES)))
    return predicted(kernel, dims)


def _lines(kernel: Kernel, dims: Mapping[str, int], found: tuple[Predicted, ...]) -> Iterator[str]:
    machine = MACHINES[kernel.target]
    told = ", ".join(f"{n} = {v}" for n, v in dims.items())
    yield f"predicted for {machine.machine} ({kernel.target}): {told}"
    for p in found:
        yield from _kernel(p)
    cycles, clock, sms = sum(p.cycles for p in found), machine.clock.value, machine.sms.value
    operations = work(kernel.graph, dims)
    time = f"{cycles:.0f} cycles, {cycles / clock / 1e3:.1f} us at {clock:g} GHz"
    if cycles and operations:
        rate = operations / cycles
        time += f"; {rate * clock / 1e3:.0f} TFLOP/s, {rate / sms:.0f} of {machine.products.value:.0f} FLOP a cycle and SM"
    yield f"in all: {time}"


def _kernel(p: Predicted) -> Iterator[str]:
    t = p.timeline
    yield f"kernel {t.kernel}: {_some(p.items, 'item')} of {_some(p.kinds, 'kind')}, {_some(p.resident, 'CTA')} an SM"
    behind = f", {p.item.next:.0f} one behind another" if p.item.next != p.item.first else ""
    yield f"  an item: {p.item.first:.0f} cycles{behind}; the launch: {p.cycles:.0f}, by its {p.bound}"
    yield from timeline_lines(t)


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
