"""The files that the compiler reads beside its own modules: the grammar, shipped schedules, example programs.

An installed wheel holds them in `wgdsl/_data`; an editable install reads the checkout that it points to.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_KINDS = ("grammar", "schedules", "examples")
FAMILIES = ("hopper", "ampere")  # folders of `schedules`, the latest first: where nobody names a target, theirs count
MEASURED = "measured"  # the folder of `schedules` that holds tables of times


def resource(kind: str, *parts: str) -> Path:
    """The path of a shipped file or folder, e.g. `resource("schedules", "hopper")`.

    kind: grammar, schedules or examples. Raises FileNotFoundError for what wasn't installed.
    """
    if kind not in _KINDS:
        raise ValueError(f"no resources of kind {kind!r}; there are {', '.join(_KINDS)}")
    packed = _PACKAGE / "_data"
    path = (packed if packed.is_dir() else _PACKAGE.parent).joinpath(kind, *parts)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: neither a whole wheel nor a whole checkout")
    return path


def is_shipped(path: Path) -> bool:
    """Whether a file is one of the shipped schedules or example programs."""
    kinds = ("schedules", "examples")
    return any(path.resolve().is_relative_to(resource(kind).resolve()) for kind in kinds)


def grammar_path() -> Path:
    """The grammar of `.wg` files, programs and schedules alike."""
    return resource("grammar", "wg.lark")


def schedule_files() -> list[Path]:
    """Every shipped schedule file, in the order in which they are looked through: those of the latest family first."""
    return [p for family in FAMILIES for p in sorted(resource("schedules", family).rglob("*.wg"))]


def table_files() -> list[Path]:
    """Every shipped table of measured times."""
    return sorted((resource("schedules") / MEASURED).glob("*.json"))
