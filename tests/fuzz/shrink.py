"""Make a failing case smaller: lower the numbers of its decisions, as long as it fails in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.fuzz.case import Case
from tests.fuzz.check import Outcome, check
from tests.fuzz.choices import Choices, replayed, seeded
from tests.fuzz.generate import case

TRIES = 400


def signature(outcome: Outcome) -> str:
    """How a case failed, in one word or two."""
    first = outcome.wrong[0] if outcome.wrong else ""
    if "WRONG" in first or "not the same" in first:
        return "WRONG" if "WRONG" in first else "differs"
    return re.sub(r"[\"'`].*", "", first)


def shrunk(seed: int, device: str = "sim", make: Callable[[Choices], Case] = case) -> tuple[Case, Outcome]:
    """The smallest case found, from that of a seed."""
    choices = seeded(seed)
    found = make(choices)
    outcome = check(found, device, seed)
    wanted, numbers, tries = signature(outcome), list(choices.taken), 0
    if not outcome.failed:
        raise ValueError(f"seed {seed} doesn't fail")

    def fails(candidate: list[int]) -> bool:
        nonlocal found, outcome, numbers, tries
        tries += 1
        again = replayed(candidate)
        one = make(again)
        if len(again.taken) > len(numbers) + 4 or (one == found and again.taken == numbers):
            return False
        result = check(one, device, seed)
        if signature(result) != wanted:
            return False
        found, outcome, numbers = one, result, again.taken
        print(f"{tries}: {len(one.text)} characters")
        return True

    progress = True
    while progress and tries < TRIES:
        progress = False
        for candidate in _candidates(lambda: numbers):
            if tries >= TRIES:
                break
            progress |= fails(candidate)
    return found, outcome


def _candidates(current: Callable[[], list[int]]):
    """Lists with a stretch cut out or set to 0, and with single numbers lowered; each of what is current then."""
    for size in (16, 8, 4, 2, 1):
        at = 0
        while at < len(current()):
            before = current()
            if any(before[at : at + size]):
                yield [*before[:at], *[0] * len(before[at : at + size]), *before[at + size :]]
            if current() is before and size <= 8:
                yield before[:at] + before[at + size :]
            at += size
    for at in range(len(current())):
        before = current()
        if at < len(before) and before[at] > 1:
            yield [*before[:at], before[at] // 2, *before[at + 1 :]]
            if current() is before:
                yield [*before[:at], before[at] - 1, *before[at + 1 :]]
