"""Variants of the shipped texts, made by edits that must apply."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def plain(path: str) -> str:
    """A shipped text without comments and with single spaces, so that edits are short."""
    lines = (re.sub(r" +", " ", re.sub(r" *#.*", "", line).strip()) for line in (ROOT / path).read_text().splitlines())
    return "\n".join(lines) + "\n"


def edit(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, f"{old!r} isn't there"
        text = text.replace(old, new)
    return text


ATTENTION = plain("examples/attention/attention.wg")
GEMM = plain("examples/gemm/gemm.wg")
FA3 = plain("schedules/hopper/attention_fa3.wg")
SIMPLE = plain("schedules/hopper/attention_simple.wg")
PIPELINED = plain("schedules/hopper/gemm_pipelined.wg")
GEMM_SPLIT = plain("schedules/hopper/gemm_split.wg")
TURNS = plain("schedules/hopper/gemm_turns.wg")
