"""The examples' own scripts, run as a user runs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from wgdsl.foundation.resources import resource

SMALL = {
    "attention": "1,70,40,1,2",
    "attention_packed": "1,70,2,64",
    "attention_bias": "1,70,40,1,64,64",
    "attention_varlen": "5,150,170,150,170,1,2,64,64",
    "gemm": "70,40,72",
    "batched_gemm": "2,70,40,72",
    "dual_gemm": "70,40,72",
    "gemm_scaled": "70,40,80",
    "row_softmax": "70,40,64",
    "sigmoid_attention": "1,70,40,1,64,64",
    "relu2_attention": "1,70,40,1,64,64",
    "entropy": "1,70,40,1,64,64",
    "two_values": "1,70,40,1,64,64,32",
    "normaliser": "70,40,64",
    "cross_entropy": "70,40,64",
    "kernel_density": "70,40,64",
    "nearest": "70,40,64",
    "gemm_statistics": "70,40,72",
    "retention": "1,70,1,64,64",
    "chained": "70,40,64,32",
}


@pytest.mark.parametrize("name", SMALL)
def test_example(name):
    command = [sys.executable, str(resource("examples", name, "run.py")), "--demo", "--shape", SMALL[name]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout and "shared memory" in done.stdout
