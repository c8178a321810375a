"""`--dims` texts as several calls.

In: texts of NAME=VALUE.  Out: the dims of each call. A name that the call has already begins the next one, in which all others
keep their values: `B=4,M=1024,N=1024,M=4096,N=4096` is two calls.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..settings import pairs, whole


def calls_of(texts: Iterable[str]) -> list[dict[str, int]]:
    """The dims of each call, every one once. Raises WgError (WG0654) for what is no NAME=VALUE."""
    calls: list[dict[str, int]] = []
    said: set[str] = set()
    for name, value in pairs(texts):
        if name in said or not calls:
            calls.append(dict(calls[-1]) if calls else {})
            said = set()
        said.add(name)
        calls[-1][name] = whole(name, value)
    return [c for n, c in enumerate(calls) if c not in calls[:n]]
