"""What storage answers is also what Python's own errors would say."""

import pytest

from tallymark.backends import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.NotFound, FileNotFoundError),
        (errors.AlreadyExists, FileExistsError),
        (errors.NotPermitted, PermissionError),
        (errors.InvalidPath, ValueError),
        (errors.Unavailable, OSError),
    ],
)
def test_each_answer_is_a_backend_error_and_the_natural_builtin(error, builtin):
    assert issubclass(error, errors.BackendError)
    assert issubclass(error, errors.TallymarkError)
    assert issubclass(error, builtin)
    assert str(error("p/a: what, why, what to do")) == "p/a: what, why, what to do"


def test_an_unknown_outcome_is_none_of_the_known_ones():
    known = (FileNotFoundError, FileExistsError, PermissionError, ValueError)
    assert not issubclass(errors.Unavailable, known)
