"""Error messages name the place, the rule, the value and the remedy; each error has its exit code."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from engine import errors
from engine.errors import BadInput, HomeError, LeakLensError, RunFailed, refusal, shown


def tree(root: type[LeakLensError] = LeakLensError) -> Iterator[type[LeakLensError]]:
    yield root
    for kind in root.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from tree(kind)


ERRORS = list(tree())


def test_a_refusal_reads_like_a_sentence() -> None:
    error = refusal("fedceo: every", "must be between 1 and 50", 0, "Try 1")
    assert isinstance(error, BadInput)
    assert (error.message, error.remedy) == ("fedceo: every: must be between 1 and 50, got 0", "Try 1")
    assert str(error) == "fedceo: every: must be between 1 and 50, got 0. Try 1."


def test_a_sentence_without_a_remedy_has_no_full_stop() -> None:
    assert str(LeakLensError("something broke.")) == "something broke"


@pytest.mark.parametrize("kind", ERRORS)
def test_full_stops_are_never_doubled_and_an_error_can_be_pickled(kind: type[LeakLensError]) -> None:
    error = kind("the store is full.", "Delete a run.")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error) == "the store is full. Delete a run."
    assert (copy.message, copy.remedy) == ("the store is full", "Delete a run")


@pytest.mark.parametrize("kind", ERRORS)
def test_the_exit_code_follows_the_tree(kind: type[LeakLensError]) -> None:
    cannot_run = issubclass(kind, BadInput | HomeError)
    assert kind.exit_code == (2 if cannot_run else 1)
    assert cannot_run or kind in (LeakLensError, RunFailed, errors.LeaseLost)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    assert errors.__doc__ is not None
    assert all(kind.__name__ in errors.__doc__ for kind in ERRORS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (0, "0"), (-1, "-1"), (0.1, "0.1"), (1e-5, "1e-05"), (float("nan"), "nan"), (None, "nothing"),
        (1e6, "1000000"), (1.0000000001, "1.0000000001"), (1e300, "1e+300"), (1e-320, "1e-320"),
        ("two words", "two words"), ("", '""'), (" ", '" "'), ("late ", '"late "'),
        ([1, "a"], '[1, "a"]'), ((1,), "[1]"), ({"a": None, "ε": True}, '{"a": null, "ε": true}'),
        ("\x1b[31mred", "\\x1b[31mred"), ("one\ntwo", "one\\ntwo"), ("\udcff", "\\udcff"), (["\x9b"], '["\\x9b"]'),
        ([10**5000], "a value of type list"), (object(), "a value of type object"),
    ],
)  # fmt: skip
def test_a_value_is_shown_as_a_user_writes_it(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize("value", ["a" * 61, list(range(1000)), {"key": "b" * 500}])
def test_a_large_value_is_cut(value: object) -> None:
    assert len(shown(value)) == 60 and shown(value).endswith("…")


@pytest.mark.parametrize("kind", ERRORS)
def test_a_message_holds_no_control_characters(kind: type[LeakLensError]) -> None:
    """A path or a name may hold any character. A message is one plain line, safe to print, hash and write as JSON."""
    error = kind("/tmp/\x1b[2J\udcff: is gone", "Look\nthere")
    assert str(error) == "/tmp/\\x1b[2J\\udcff: is gone. Look\\nthere."
    assert str(pickle.loads(pickle.dumps(error))) == str(error) and str(error).encode().decode() == str(error)


def test_sixty_letters_are_shown_whole() -> None:
    assert shown("a" * 60) == "a" * 60
