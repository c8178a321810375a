"""The CUDA text of every shipped kernel, whole, one file each, and the list of how each is made.

`pytest tests/golden --snapshot-update` rewrites them; `wgdsl golden status` then lists those that no GPU has run yet.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shipped import KERNELS, ROOT, Shipped, field_ids
from tests.snapshots import CudaFile, JsonFile
from wgdsl.tools.golden import relative, states, unused
from wgdsl.tools.manifest import Folder, Golden, read_folder

FOLDER = Path(__file__).parent / "__snapshots__" / "test_golden"


def golden_of(s: Shipped) -> Golden:
    """A shipped kernel as `wgdsl golden` writes it down."""
    fixed = [(n, str(v).lower() if isinstance(v, bool) else v) for n, v in (*s.options, *s.dims)]
    settings = (*(f"{n}={t}" for n, t in s.types.items()), *(f"{n}={v}" for n, v in fixed))
    return Golden(name=s.name, file=relative(ROOT / s.program, FOLDER), schedule=s.schedule, settings=settings)


def manifest() -> Folder:
    folder = Folder(path=FOLDER, record=relative(ROOT / "tests" / "hardware.json", FOLDER), own=True)
    for s in KERNELS:
        folder = folder.with_golden(golden_of(s))
    return folder


@pytest.mark.parametrize("shipped", KERNELS, ids=field_ids())
def test_golden(shipped: Shipped, snapshot):
    kernel = shipped.compile()
    assert kernel.cuda == snapshot(extension_class=CudaFile, name=shipped.name)


def test_manifest(snapshot):
    assert manifest().text() == snapshot(extension_class=JsonFile, name="golden")


def test_the_command_emits_the_same_texts():
    folder = read_folder(FOLDER)
    assert [s.name for s in states(folder) if not s.current] == []


def test_no_golden_is_left_over():
    assert [s.name for s in unused(manifest()) if s.path.suffix == ".cu"] == []
    assert {f.name for f in FOLDER.iterdir()} == {"golden.json", *(f"{name}.cu" for name in field_ids())}
