"""Many processes of many threads that compile the same kernels at once, into a cold cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import wgdsl
from wgdsl.foundation.resources import resource
from wgdsl.runtime import lowered
from wgdsl.runtime.cache import KIND

GEMM = resource("examples", "gemm", "gemm.wg")

# A process: its threads wait for each other, then each compiles all kernels, beginning with another one. It prints how often
# it compiled each text, and the hashes of what its threads got.
CHILD = """
import collections, hashlib, itertools, json, sys, threading, warnings
warnings.simplefilter("error")
import wgdsl
from wgdsl.runtime import cache, lowered, nvrtc

path, threads, kernels = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
lowered.package_hash = lambda: "this package"  # others edit it while tests run
options = [("types", "T", t) for t in ("f16", "bf16")], [("options", "bias", b) for b in (False, True)]
options += ([("options", "layout", x) for x in ("nk", "kn")],)
requests = list(itertools.product(*options))[:kernels]
compiled, inner = collections.Counter(), cache.nvrtc.compile
lock, gate, got = threading.Lock(), threading.Barrier(threads), collections.defaultdict(set)

def counting(text, arch, name):
    with lock:
        compiled[hashlib.sha256(text.encode()).hexdigest()] += 1
    return inner(text, arch, name)

shared = cache.Cache.shared()
shared._compiler = counting

def work(first):
    gate.wait()
    for k in range(kernels):
        n = (first + k) % kernels
        given = collections.defaultdict(dict)
        for kind, name, value in requests[n]:
            given[kind][name] = value
        cubin = wgdsl.compile(path, "pipelined", **given).cubin
        with lock:
            got[n].add(hashlib.sha256(cubin).hexdigest())

workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
for w in workers: w.start()
for w in workers: w.join()
print(json.dumps({"compiled": dict(compiled), "got": {n: sorted(x) for n, x in got.items()}}))
"""


def start(folder: Path, threads: int, kernels: int) -> subprocess.Popen:
    command = [sys.executable, "-c", CHILD, str(GEMM), str(threads), str(kernels)]
    environment = {**os.environ, "WGDSL_CACHE_DIR": str(folder)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


SIZES = [(2, 4, 2), pytest.param(8, 8, 8, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]


@pytest.mark.parametrize("processes, threads, kernels", SIZES)
def test_a_cold_cache(tmp_path, processes, threads, kernels):
    import json

    children = [start(tmp_path, threads, kernels) for _ in range(processes)]
    results = []
    for child in children:
        said, complaints = child.communicate(timeout=500)
        assert child.returncode == 0, complaints
        results.append(json.loads(said))
    for result in results:
        assert all(count == 1 for count in result["compiled"].values()), "one compilation a kernel and process"
        assert result["got"] == results[0]["got"] and len(result["got"]) == kernels
        assert all(len(hashes) == 1 for hashes in result["got"].values())
    assert len({h for hashes in results[0]["got"].values() for h in hashes}) == kernels
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    kinds = [p.relative_to(tmp_path).parts[0].split("-")[0] for p in files]
    assert all(p.suffix in (".bin", ".tables") for p in files), "no temporary and no lock file"
    assert (kinds.count(KIND), kinds.count("forms"), kinds.count("grammar")) == (kernels, kernels, 1)
    again = start(tmp_path, threads, kernels)
    said, complaints = again.communicate(timeout=100)
    assert again.returncode == 0 and json.loads(said) == {"compiled": {}, "got": results[0]["got"]}, complaints


def test_a_process_killed_anywhere_leaves_nothing_that_stands_in_the_way(tmp_path, monkeypatch):
    for seconds in (0.2, 0.35, 0.5, 0.8):
        child = start(tmp_path, 2, 1)
        time.sleep(seconds)
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
    monkeypatch.setenv("WGDSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(lowered, "package_hash", lambda: "this package")
    lowered.forget()
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wgdsl.compile(GEMM, types={"T": "f16"}).cubin
    assert time.perf_counter() - began < 60
    lowered.forget()
