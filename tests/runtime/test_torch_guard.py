"""Forms of calls and torch's own check of tensors, on tensors of a real torch, where there is one."""

from __future__ import annotations

import sys

import pytest

from wgdsl.runtime import torch_guard
from wgdsl.runtime.torch_call import OFTEN, Form

torch = pytest.importorskip("torch")


def tensors():
    return torch.zeros(2, 3), torch.zeros(4, 4).t()


def test_the_check_is_trusted_and_tells_tensors_apart():
    assert torch_guard._trusted()
    a, b = tensors()
    check = torch_guard.check_of([a, b])
    assert check is not None
    assert check(torch.ones(2, 3), torch.ones(4, 4).t()[:, :]) and not check(b, a)
    assert not check(torch.ones(2, 4)[:, :3], torch.ones(4, 4).t())
    assert not check(torch.ones(2, 3, requires_grad=True), torch.ones(4, 4).t())


class Known:
    """What a first look would have come to."""


def warm(form: Form, *values) -> Known:
    """Calls until the form has its check for this layout."""
    _, _, cell = form.find(*values)
    assert cell is not None
    cell.ready = known = Known()  # type: ignore[assignment]
    for _ in range(OFTEN + 2):
        ready, pointers, _ = form.find(*values)
        assert ready is known and pointers == tuple(v.data_ptr() for v in values if isinstance(v, torch.Tensor))
    return known


def form(*kinds: str) -> Form:
    return Form([f"x{k}" for k in range(len(kinds))], kinds)


@pytest.fixture(params=["with the check", "by the key alone"], autouse=True)
def check(request, monkeypatch):
    if request.param == "by the key alone":
        monkeypatch.setattr(sys.modules["wgdsl.runtime.torch_call"], "check_of", lambda tensors: None)


def test_the_same_layout_elsewhere_is_found(check):
    a, b = tensors()
    f = form("array", "array")
    known = warm(f, a, b)
    assert f.find(a.clone(), torch.ones(4, 4).t())[0] is known
    assert f.find(torch.nn.Parameter(a, requires_grad=False), b)[0] is known


CHANGES = {
    "shape": lambda t: torch.zeros(3, 2),
    "rank": lambda t: t[None],
    "strides": lambda t: torch.zeros(3, 2).t(),
    "a slice": lambda t: torch.zeros(2, 4)[:, :3],
    "a broadcast": lambda t: torch.zeros(1, 3).expand(2, 3),
    "element type": lambda t: t.half(),
    "sign": lambda t: torch._neg_view(t),
    "sparse": lambda t: t.to_sparse(),
    "nested": lambda t: torch.nested.nested_tensor([t[0], t[1]]),
    "gradient": lambda t: t.clone().requires_grad_(),
    "subclass": lambda t: t.as_subclass(type("Mine", (torch.Tensor,), {})),
    "a number": lambda t: 1.0,
    "nothing": lambda t: None,
    "array": lambda t: t.numpy(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_layout_is_not(check, name):
    a, b = tensors()
    f = form("array", "array")
    known = warm(f, a, b)
    changed = CHANGES[name](a)
    for _ in range(OFTEN + 2):
        assert f.find(changed, b)[0] is None
    assert f.find(a, b)[0] is known


def test_tensors_inside_transformations_are_not(check):
    f, found = form("array"), []
    warm(f, torch.zeros(3))

    def body(x):
        found.append(f.find(x)[0])
        return x.sum()

    torch.vmap(body)(torch.zeros(2, 3))
    torch.func.grad(body)(torch.zeros(3))
    assert found == [None, None]


def test_gradients_go_by_the_mode(check):
    """Known without grad mode, refused with it, and known again."""
    f, x = form("array"), torch.zeros(2, 3, requires_grad=True)
    with torch.no_grad():
        known = warm(f, x)
    for _ in range(OFTEN + 2):
        assert f.find(x) == (None, (), None)
    with torch.no_grad():
        assert f.find(x)[0] is known
    with torch.inference_mode():
        assert f.find(x)[0] is known


def test_a_tensor_changed_in_place_is_another(check):
    a, b = tensors()
    f = form("array", "array")
    known = warm(f, a, b)
    a.t_()
    assert f.find(a, b)[0] is None
    a.t_()
    assert f.find(a, b)[0] is known
    a.data = torch.zeros(3, 3)
    assert f.find(a, b)[0] is None
    a.data = torch.zeros(2, 3)
    ready, pointers, _ = f.find(a, b)
    assert ready is known and pointers == (a.data_ptr(), b.data_ptr())


def test_one_tensor_twice(check):
    a, _ = tensors()
    f = form("array", "array")
    known = warm(f, a, a)
    assert f.find(a, a)[0] is known


def test_numbers_beside(check):
    a, b = tensors()
    f = form("array", "number", "array")
    known = warm(f, a, 0.0, b)
    for other in (-0.0, 0, False, 1.0, None, "0.0", torch.zeros(()), torch.zeros(2)):
        assert f.find(a, other, b)[0] is None
    assert f.find(a, 0.0, b)[0] is known
    nan = float("nan")
    assert warm(f, a, nan, b) is f.find(a, nan, b)[0]


def test_layouts_in_turn(check):
    f = form("array")
    known = [warm(f, torch.zeros(n)) for n in range(1, 12)]
    for _ in range(3):
        assert [f.find(torch.zeros(n))[0] for n in range(1, 12)] == known
