"""The command line of `wgdsl bench`."""

from __future__ import annotations

import pytest

from wgdsl.bench import bench as module
from wgdsl.cli import ENVIRONMENT, OK, USER, main
from wgdsl.runtime import cuda


@pytest.fixture
def command(capsys):
    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["bench", *words])
        seen = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, seen.out, seen.err

    return run


@pytest.fixture
def asked(monkeypatch, command):
    """The request that the command makes of its words."""
    found = []
    monkeypatch.setattr(module, "bench", lambda request, *files: found.append((request, *files)) or OK)

    def run(*words: str):
        assert command(*words)[0] == OK
        return found[-1]

    return run


@pytest.mark.parametrize(
    "words, said",
    [
        (["atention"], "WG1016"),
        (["attention", "--lengths", "many"], "no length `many`"),
        (["attention", "--rounds", "0"], "WG1015"),
        (["show"], "`show` takes one file"),
        (["show", "nowhere.jsonl"], "nowhere.jsonl"),
        (["attention", "--rounds", "some"], "Invalid value for '--rounds'"),
    ],
)
def test_mistakes(command, words, said):
    code, _, err = command(*words)
    assert code == USER and said in err


def test_the_words_of_a_request(asked):
    words = "attention ampere --head-dims 64,128 --schedule two --schedule three --peers all --cases a,b --seed 3 --jobs 2"
    request, jsonl, plot, _ = asked(*words.split(), "--jsonl", "x.jsonl", "--budget", "60")
    assert request.suites == ("attention", "ampere") and request.cases == ("a", "b") and request.peers == ("all",)
    assert request.filters == {"--head-dims": ("64", "128"), "--masks": (), "--dtypes": (), "--lengths": ()}
    assert request.schedules == ("two", "three")
    assert (request.seed, request.jobs, request.budget, request.rounds) == (3, 2, 60.0, 5)
    assert (str(jsonl), plot) == ("x.jsonl", None)


def test_inputs_are_new_ones_unless_a_seed_says_otherwise(asked):
    assert asked("gemm")[0].seed != asked("gemm")[0].seed


@pytest.mark.parametrize("lacks, said", [("torch", "needs torch"), ("gpu", "needs a GPU")])
def test_what_a_machine_lacks(monkeypatch, command, lacks, said, tmp_path):
    monkeypatch.setattr(module, "find_spec", lambda name: None if lacks == "torch" else object())
    monkeypatch.setattr(cuda, "gpu", lambda: None)
    code, _, err = command("gemm", "--jsonl", str(tmp_path / "x.jsonl"))
    assert code == ENVIRONMENT and said in err
    assert not (tmp_path / "x.jsonl").exists()  # what an earlier run left stays as it is
