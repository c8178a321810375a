"""The three families of errors.

A `Problem` is a user error of the catalogue: a frozen dataclass with a code, whose fields are data only; its text comes
from its methods. `WgError` carries one or more of them. `EnvironmentFault` is a missing driver, device or compiler.
Anything else that escapes is ours: `driver` turns it into an `InternalError` with a crash bundle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ..foundation.source import Span


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Base of the catalogue. Subclasses set `code` (WGxxxx) and `doc`, and override the texts.

    `span` is where; `title()` is the first line; `label()` stands under the caret; `notes()` and `help()` follow.
    """

    span: Span | None = None
    code: ClassVar[str] = ""
    doc: ClassVar[str] = ""  # what `wgdsl help CODE` prints: the rule, a failing and a mended example

    def title(self) -> str:
        raise NotImplementedError

    def label(self) -> str:
        return ""

    def others(self) -> tuple[tuple[Span, str], ...]:
        """Further places with their labels (first declaration, the reader that ...)."""
        return ()

    def notes(self) -> tuple[str, ...]:
        return ()

    def help(self) -> str:
        return ""


class WgError(Exception):
    """One or more user errors, in source order."""

    def __init__(self, problems: Problem | Iterable[Problem]):
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("; ".join(f"{p.code}: {p.title()}" for p in self.problems))

    def __str__(self) -> str:
        from .render import render_all

        return render_all(self.problems)


class EnvironmentFault(Exception):
    """No device, no driver, no compiler: nothing in the user's text is wrong. `cure` says what to do."""

    def __init__(self, message: str, cure: str = ""):
        self.cure = cure
        super().__init__(message + (f"\n  help: {cure}" if cure else ""))


class InternalError(Exception):
    """A defect of wgdsl. `bundle` is the path of the crash bundle, if one was written."""

    def __init__(self, message: str, bundle: str | None = None):
        self.bundle = bundle
        super().__init__(message)
