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


def _parse(form: Any) -> str:
    from .syntax.printer import fmt

    return "\n".join(fmt(source) for source in form.sources)


def _graph(form: Any) -> str:
    from .program.text import graph_text

    return graph_text(form)


def _stream(form: Any) -> str:
    from .program.streamed import streamed_text

    return streamed_text(form)


def _roles(form: Any) -> str:
    from .roles.text import roles_text

    return roles_text(form)


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
    "canonicalise": _graph,
    "stream": _stream,
    "lower": _roles,
    "verify": _checked,
    "emit": _cuda,
}
PASSES = tuple(_TEXTS)
