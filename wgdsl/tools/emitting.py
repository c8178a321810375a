"""`--emit` and `--print-after`: any form of a kernel as text, or its cubin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import UnknownSetting
from ..driver import Journal, guarded
from ..forms import COMPILED, EMITS, PASSES, explained, text_of
from ..runtime.kernel import Kernel


def emitted(prepared: tuple[Kernel, Journal], what: str) -> str | bytes:
    """The form named `what`. Raises WgError for a name that is none."""
    kernel, journal = prepared
    if what == "roles":
        with guarded(journal):
            return explained(journal.forms)
    if what in EMITS:
        with guarded(journal):
            return text_of(EMITS[what], _form(journal, what))
    if what not in COMPILED:
        raise WgError(UnknownSetting(text=what, known=(*EMITS, *COMPILED), why=f"there is no form `{what}` to emit"))
    with guarded(journal):
        kernel.build()
        form = getattr(kernel, what)
        return form if isinstance(form, bytes) else str(form)


def _form(journal: Journal, what: str) -> Any:
    """The form of that name. An explicit form has no streamed graph, and its program graph is that of the text."""
    name = EMITS[what]
    if name not in journal.forms and what == "graph":
        return journal.forms["analyse"]
    if name not in journal.forms:
        known = tuple(n for n in EMITS if EMITS[n] in journal.forms)
        raise WgError(UnknownSetting(text=what, known=known, why=f"an explicit form has no {what}: its steps are written"))
    return journal.forms[name]


def print_forms(journal: Journal, passes: Iterable[str]) -> None:
    """Print what the named passes made."""
    for name in passes:
        if name not in PASSES:
            raise WgError(UnknownSetting(text=name, known=PASSES, why=f"no pass is called `{name}`"))
        if name not in journal.forms:
            raise WgError(
                UnknownSetting(text=name, known=tuple(journal.forms), why=f"pass `{name}` isn't run on an explicit form")
            )
        print(f"# after {name}")
        print(text_of(name, journal.forms[name]), end="")
