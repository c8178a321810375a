"""User names as C++ identifiers."""

from __future__ import annotations

import re

_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const const_cast constexpr consteval constinit continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq""".split()  # noqa: SIM905
)


def identifier(name: str) -> str:
    """The name itself where C++ allows it, else something near that it does allow."""
    out = re.sub(r"[^0-9A-Za-z_]", lambda m: "_" if m[0] in ". -'" else f"u{ord(m[0]):x}_", name)
    out = re.sub(r"__+", "_", out).lstrip("_") or "name"
    if out in _KEYWORDS:
        return out + "_"
    return f"n{out}" if out[0].isdigit() else out
