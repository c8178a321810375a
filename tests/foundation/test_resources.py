"""The files that ship beside the modules are found in a checkout and in a built wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from wgdsl.foundation import resources
from wgdsl.targets.choice import FAMILIES

CHECKOUT = Path(__file__).parents[2]
LIST = """
from wgdsl.foundation.resources import *
print(grammar_path(), *schedule_files(), *table_files(), *sorted(resource("examples").glob("*/*.wg")))
"""


def shipped() -> list[Path]:
    return [resources.grammar_path(), *resources.schedule_files(), *resources.table_files(), *programs()]


def programs() -> list[Path]:
    return sorted(resources.resource("examples").glob("*/*.wg"))


def test_a_checkout_has_the_grammar_schedules_and_programs():
    assert all(path.is_file() and path.is_relative_to(CHECKOUT) for path in shipped())
    assert resources.schedule_files() and programs()


def test_schedules_of_every_family_are_found():
    """The folders are the families of targets, and none is left out."""
    assert resources.FAMILIES == FAMILIES
    assert sorted(resources.schedule_files()) == sorted(resources.resource("schedules").rglob("*.wg"))


def test_what_is_shipped_is_told_from_what_is_not(tmp_path):
    assert all(resources.is_shipped(p) for p in (*resources.schedule_files(), *programs()))
    (tmp_path / "examples").mkdir()
    assert not resources.is_shipped(tmp_path / "examples" / "mine.wg") and not resources.is_shipped(resources.grammar_path())


def test_an_unknown_kind_names_those_that_exist():
    with pytest.raises(ValueError, match="grammar, schedules, examples"):
        resources.resource("fonts")


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="no-such"):
        resources.resource("schedules", "no-such.wg")


def test_a_wheel_carries_the_same_files(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, CHECKOUT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    run = subprocess.run(
        [sys.executable, "-c", LIST],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        check=True,
        capture_output=True,
        text=True,
    )
    found = [Path(word) for word in run.stdout.split()]
    assert all(path.is_relative_to(site) for path in found)
    assert [p.name for p in found] == [p.name for p in shipped()]
