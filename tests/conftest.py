"""Markers, random-test profiles and the GPU record of all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from wgdsl.tools import hardware

# The same examples on every run, so that a red test is red for everyone; the thorough profile looks further.
settings.register_profile("default", deadline=None, max_examples=60, derandomize=True, database=None)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile("default")

_OUTCOME = pytest.StashKey[str]()
_LEDGER = pytest.StashKey["Ledger"]()


class Ledger:
    """What the kernels did in this run: `right` by text, and the texts that some failed test had run."""

    def __init__(self, path: Path | None):
        self.path = path
        self.right: dict[str, hardware.Record] = {}
        self.wrong: set[str] = set()

    def close(self, recorder: Recorder, passed: bool) -> None:
        if not passed:
            self.wrong |= recorder.tried
            return
        for key, row in recorder.rows:
            self.right[key] = self.right[key].joined(row) if key in self.right else row

    def write(self) -> None:
        if self.path is None or not (self.right or self.wrong):
            return
        hardware.merge(self.path, {k: r for k, r in self.right.items() if k not in self.wrong}, self.wrong)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-hardware",
        metavar="FILE",
        help="merge into FILE which CUDA texts ran right on this machine's GPU (FILE: tests/hardware.json)",
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--record-hardware")
    if path and config.getoption("numprocesses", None):
        raise pytest.UsageError("--record-hardware keeps its ledger in one process: leave -n out")
    config.stash[_LEDGER] = Ledger(Path(path) if path else None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none; look for one only if something needs it."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and hardware.find_card() is None:
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="no CUDA device on this machine"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.when == "call":
        item.stash[_OUTCOME] = report.outcome
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[_LEDGER].write()


@pytest.fixture(scope="session")
def card() -> hardware.Card:
    """The GPU that the tests run on."""
    found = hardware.find_card()
    if found is None:
        pytest.skip("no CUDA device on this machine")
    return found


class Recorder:
    """Which texts one test runs on the GPU, and how well."""

    def __init__(self, card: hardware.Card):
        self.card = card
        self.rows: list[tuple[str, hardware.Record]] = []
        self.tried: set[str] = set()

    def tries(self, cuda_text: str) -> None:
        """This test is about to run the text: if the test fails, the text loses the record it had."""
        self.tried.add(hardware.digest(cuda_text))

    def __call__(self, cuda_text: str, kernel: str, max_error: float, runs: int = 1) -> None:
        """This test ran the text, with that largest absolute error against float64: kept if the test passes."""
        self.tries(cuda_text)
        row = hardware.Record(
            kernel=kernel,
            card=self.card.name,
            driver=self.card.driver,
            nvrtc=self.card.nvrtc,
            max_error=float(max_error),
            runs=runs,
            date=hardware.today(),
        )
        self.rows.append((hardware.digest(cuda_text), row))


@pytest.fixture
def record(request: pytest.FixtureRequest, card: hardware.Card):
    """`record.tries(cuda_text)` before a kernel runs on the GPU, `record(cuda_text, kernel, max_error)` afterwards."""
    recorder = Recorder(card)
    yield recorder
    request.config.stash[_LEDGER].close(recorder, passed=request.node.stash.get(_OUTCOME, "") == "passed")
