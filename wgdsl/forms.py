"""The text of each form, by the name of the pass that made it.

In: the forms of a journal.  Out: texts, made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

# What `--emit` takes: the pass whose form it prints, and what only the compiled kernel has.
EMITS = {"ast": "parse", "graph": "canonicalise", "stream": "stream", "roles": "verify", "cuda": "emit"}
COMPILED = ("ptx", "cubin", "sass", "report")


def text_of(name: str, form: Any) -> str:
    """The text of the form that pass `name` made."""
    return _TEXTS[name](form)


def texts_of(forms: Mapping[str, Any]) -> dict[str, Callable[[], str] | str]:
    """File name -> text, for a crash bundle."""
    return {f"{n}-{name}.txt": partial(text_of, name, form) for n, (name, form) in enumerate(forms.items())}


def _cut(form: Any) -> str:
    from .program.text import graph_text

    return "\n".join(f"kernel {p.schedule.name}\n{graph_text(p.graph)}" for p in form)


def explained(forms: Mapping[str, Any]) -> str:
    """The explicit form of what was compiled: a whole `.wg` text, program and role program, that compiles to the same."""
    from .roles.settings import settings_text
    from .roles.text import roles_text

    program = forms["parse"].program
    block = roles_text(forms["verify"].program, settings=settings_text(forms["analyse"]))
    return f"wg 1\n\n{program.span.text}\n\n{block}"


def _parse(form: Any) -> str:
    from .syntax.printer import fmt

    return "\n".join(fmt(source) for source in form.sources)


def _all(form: Any) -> tuple[Any, ...]:
    """The form of each kernel."""
    return form if isinstance(form, tuple) else (form,)


def _graph(form: Any) -> str:
    from .program.text import graph_text

    return "\n".join(graph_text(g) for g in _all(form))


def _stream(form: Any) -> str:
    from .program.streamed import streamed_text

    return "\n".join(streamed_text(s) for s in _all(form))


def _roles(form: Any) -> str:
    from .roles.text import roles_text

    return "\n".join(roles_text(r) for r in _all(form))


def _checked(form: Any) -> str:
    return _roles(form.program)


def _cuda(form: Any) -> str:
    return "\n".join(form.values())


def _schedule(form: Any) -> str:
    from .syntax.printer import show

    schedule, _ = form
    return show(schedule) + "\n"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "parse": _parse,
    "analyse": _graph,
    "resolve": _schedule,
    "cut": _cut,
    "fuse": _graph,
    "canonicalise": _graph,
    "approximate": _graph,
    "stream": _stream,
    "lower": _roles,
    "verify": _checked,
    "emit": _cuda,
}
PASSES = tuple(_TEXTS)
