"""`--emit` and `--print-after`: any form of a kernel as text, or its cubin."""

from __future__ import annotations

from collections.abc import Iterable

from ..diagnostics.model import WgError
from ..diagnostics.runtime import UnknownSetting
from ..driver import Journal, guarded
from ..forms import COMPILED, EMITS, PASSES, text_of
from ..runtime.kernel import Kernel


def emitted(prepared: tuple[Kernel, Journal], what: str) -> str | bytes:
    """The form named `what`. Raises WgError for a name that is none."""
    kernel, journal = prepared
    if what in EMITS:
        with guarded(journal):
            return text_of(EMITS[what], journal.forms[EMITS[what]])
    if what not in COMPILED:
        raise WgError(UnknownSetting(text=what, known=(*EMITS, *COMPILED), why=f"there is no form `{what}` to emit"))
    with guarded(journal):
        kernel.build()
        form = getattr(kernel, what)
        return form if isinstance(form, bytes) else str(form)


def print_forms(journal: Journal, passes: Iterable[str]) -> None:
    """Print what the named passes made."""
    for name in passes:
        if name not in PASSES:
            raise WgError(UnknownSetting(text=name, known=PASSES, why=f"no pass is called `{name}`"))
        print(f"# after {name}")
        print(text_of(name, journal.forms[name]), end="")
