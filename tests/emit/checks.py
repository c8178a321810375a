"""FileCheck in process: the checks stand beside the input."""

from __future__ import annotations

import io

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import DumpInputKind, Options
from filecheck.parser import Parser, pattern_for_opts


def check(text: str, checks: str) -> None:
    """Fails, with the place, unless `text` passes the `CHECK` lines."""
    options = Options("checks", dump_input=DumpInputKind.FAIL)
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("text", text), parser)
    matcher.stderr = io.StringIO()
    assert matcher.run() == 0, f"{matcher.stderr.getvalue()}\n{text}"
