"""Nearest names, for "did you mean ...?"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that `word` is probably meant to be, or ''. A longer word may have been cut short."""
    known = tuple(known)
    longer = [k for k in known if len(word) >= 3 and k.startswith(word)]
    close = longer if len(longer) == 1 else get_close_matches(word, known, n=1, cutoff=0.6)
    return close[0] if close else ""
