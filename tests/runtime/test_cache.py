"""The cache of compiled kernels: races, torn files, folders that can't be written, stale keys."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from wgdsl.runtime import nvrtc, store
from wgdsl.runtime.cache import KIND, REMEMBERED, Cache, decode, encode, key_of
from wgdsl.runtime.nvrtc import Compiled
from wgdsl.runtime.store import CacheWarning, Folder

TEXT = 'extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= %s; }'


class Counting:
    """A compiler that counts, and takes its time."""

    def __init__(self, seconds: float = 0.0):
        self.calls, self.seconds, self.lock = 0, seconds, threading.Lock()

    def __call__(self, text: str, arch: str, name: str) -> Compiled:
        with self.lock:
            self.calls += 1
        time.sleep(self.seconds)
        return Compiled(cubin=text.encode() * 50, ptx="ptx", log="log", nvrtc="13.5", seconds=0.5)


def entry(folder: Path, text: str = "a") -> Path:
    return Folder(folder).place(KIND, key_of(text, "sm_90a", nvrtc.version()))


def test_second_cache_reads_the_first(tmp_path):
    first, second = Counting(), Counting()
    made = Cache(tmp_path, first).compile("a", "sm_90a")
    read = Cache(tmp_path, second).compile("a", "sm_90a")
    assert (first.calls, second.calls) == (1, 0) and read.cached and not made.cached
    assert (read.cubin, read.log, read.seconds) == (made.cubin, made.log, made.seconds)


def test_threads_wait_for_one_compilation(tmp_path):
    compiler = Counting(0.2)
    cache = Cache(tmp_path, compiler)
    threads = [threading.Thread(target=cache.compile, args=("a", "sm_90a")) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert compiler.calls == 1


def flipped(data: bytes) -> bytes:
    at = len(data) - 3
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def rehashed(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


DAMAGE = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "a flipped bit": flipped,
    "other JSON": lambda data: data[:65] + b"{" + data[65:],
    "noise": lambda data: b"\x00\xff" * 40,
    "another entry": lambda data: rehashed(b"{}\ncubin"),
    "no JSON": lambda data: rehashed(b"[1, 2\ncubin"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entries_are_made_again_with_one_warning(tmp_path, damage):
    Cache(tmp_path, Counting()).compile("a", "sm_90a")
    path = entry(tmp_path)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    compiler = Counting()
    with pytest.warns(CacheWarning) as said:
        cache = Cache(tmp_path, compiler)
        cache.compile("a", "sm_90a")
        cache.compile("a", "sm_90a")
    assert len(said) == 1 and str(path) in str(said[0].message) and compiler.calls == 1
    assert Cache(tmp_path, Counting()).compile("a", "sm_90a").cached, "and the entry is whole again"


def test_a_file_where_the_folder_should_be(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    compiler = Counting()
    cache = Cache(blocked, compiler)
    with pytest.warns(CacheWarning) as said:
        for text in "aab":
            cache.compile(text, "sm_90a")
    assert len(said) == 1 and compiler.calls == 2


def test_no_room_on_the_disk(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "replace", full)
    with pytest.warns(CacheWarning, match="No space left"):
        assert Cache(tmp_path, Counting()).compile("a", "sm_90a").cubin
    assert not [p for p in tmp_path.rglob("*") if p.is_file()], "no temporary file stays behind"


def test_a_failed_compilation_is_tried_again(tmp_path):
    def failing(*_):
        raise RuntimeError("no")

    cache = Cache(tmp_path, failing)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            cache.compile("a", "sm_90a")
    assert not entry(tmp_path).exists()


def test_the_key_is_what_the_compiler_reads(monkeypatch):
    base = key_of("a", "sm_90a", "13.5")
    assert base != key_of("b", "sm_90a", "13.5")
    assert base != key_of("a", "sm_90", "13.5")
    assert base != key_of("a", "sm_90a", "13.0")
    monkeypatch.setattr(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, "--more"))
    assert base != key_of("a", "sm_90a", "13.5")


def test_entries_hold_any_bytes():
    made = Compiled(cubin=b"\n\n\x00cubin\n", ptx="p\nq", log="l", nvrtc="13.5", seconds=1.0)
    read = decode(encode(made))
    assert (read.cubin, read.ptx, read.cached) == (made.cubin, made.ptx, True)


def test_memory_is_bounded(tmp_path):
    compiler = Counting()
    cache = Cache(tmp_path, compiler)
    for k in range(REMEMBERED + 20):
        cache.compile(str(k), "sm_90a")
    assert len(cache._memory._values) == REMEMBERED and not cache._memory._making
    assert cache.compile("0", "sm_90a").cached, "what the memory dropped comes from the disk"


CHILD = """
import sys, warnings
warnings.simplefilter("error")
from pathlib import Path
from wgdsl.runtime.cache import Cache
made = Cache(Path(sys.argv[1])).compile({text!r}, "sm_90a")
assert made.cubin[:4] == b"\\x7fELF"
"""


def spawn(folder: Path, text: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", CHILD.format(text=text), str(folder)], stderr=subprocess.PIPE, text=True)


def test_eight_processes_on_a_cold_cache(tmp_path):
    children = [spawn(tmp_path, TEXT % "2.0f") for _ in range(8)]
    for child in children:
        _, said = child.communicate(timeout=120)
        assert child.returncode == 0, said
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert files == [entry(tmp_path, TEXT % "2.0f")]


def test_a_killed_process_leaves_nothing_that_blocks(tmp_path):
    child = spawn(tmp_path, TEXT % "3.0f")
    time.sleep(0.3)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Cache(tmp_path).compile(TEXT % "3.0f", "sm_90a").cubin


def locked(folder: Path) -> Path:
    """A folder that this user can't write to, be he root."""
    if os.geteuid() == 0:
        return Path("/sys/kernel/wgdsl")
    folder.chmod(0o500)
    return folder


def test_a_folder_that_is_read_only(tmp_path):
    compiler = Counting()
    cache = Cache(locked(tmp_path), compiler)
    with pytest.warns(CacheWarning, match="can't be kept") as said:
        for text in "abab":
            assert cache.compile(text, "sm_90a").cubin
    assert len(said) == 1 and compiler.calls == 2
    tmp_path.chmod(0o700)


def test_what_a_killed_process_left_is_removed_in_time(tmp_path):
    Cache(tmp_path, Counting()).compile("a", "sm_90a")
    old, new = (entry(tmp_path).parent / name for name in (".new-old", ".new-now"))
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (0, 0))
    entry(tmp_path).unlink()
    Cache(tmp_path, Counting()).compile("a", "sm_90a")
    assert not old.exists() and new.exists(), "another process may be writing the new one"


def test_a_lock_file_of_a_dead_owner_is_not_looked_at(tmp_path):
    path = entry(tmp_path)
    path.parent.mkdir(parents=True)
    for name in (f"{path.name}.lock", ".lock", "lock"):
        (path.parent / name).write_text("4194304")
    start = time.perf_counter()
    assert Cache(tmp_path, Counting()).compile("a", "sm_90a").cubin
    assert time.perf_counter() - start < 5
