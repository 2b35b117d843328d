"""Views of tensors that came to require gradients after the views were made."""
import pytest

import flambeau as torch


def late_view():
    base = torch.arange(6.0)
    view = base[:3]
    base.requires_grad_()
    return base, view


def test_requires_grad_as_its_base():
    base, view = late_view()
    assert view.requires_grad and view.is_leaf and view.grad_fn is None
    (view * 2).sum().backward()
    assert base.grad is None and view.grad is None
    assert not base[:2].to(torch.int64).requires_grad and not base.detach()[:2].requires_grad
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        view.zero_()
    with torch.no_grad():
        assert view.zero_()[0].item() == 0.0


@pytest.mark.parametrize("f", [
    lambda x, y: (x * 2, y + 1), lambda x, y: y.zero_(), lambda x, y: (y * x[3:]).sum(),
    lambda x, y: y.sum()])
def test_compiled_as_eagerly(f):
    outcomes = []
    for function in (f, torch.compile(f)):
        seen = []
        for args in (late_view(), (torch.arange(6.0, requires_grad=True), torch.ones(3)), late_view()):
            try:
                result = function(*args)
                result = result if isinstance(result, tuple) else (result,)
                sum(r.sum() for r in result).backward() if any(r.requires_grad for r in result) else None
                seen.append([(r.tolist(), r.requires_grad) for r in result])
            except RuntimeError as error:
                seen.append(str(error))
            seen.append([None if a.grad is None else a.grad.tolist() for a in args])
        outcomes.append(seen)
    assert outcomes[0] == outcomes[1]
