"""Policies for failures: what is caught, logged, undone and raised."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from nova import errors, failures

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.DEBUG)


class Ended(BaseException):
    """An exception like that of a killed green thread."""


def test_translated_when_the_error_is_expected_then_it_is_the_cause() -> None:
    with pytest.raises(errors.Invalid, match="not 'x'") as raised, \
            failures.translated(ValueError, lambda error: errors.Invalid(f"not {error}")):
        raise ValueError("'x'")
    assert isinstance(raised.value.__cause__, ValueError)


def test_replaced_when_the_error_is_expected_then_a_traceback_omits_it() -> None:
    with pytest.raises(errors.Invalid, match="not a number") as raised, \
            failures.replaced((ValueError, KeyError), lambda _: errors.Invalid("not a number")):
        raise KeyError("x")
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("policy", [
    failures.translated(ValueError, lambda _: errors.Bug()), failures.replaced(ValueError, lambda _: errors.Bug()),
    failures.replaced(LookupError, lambda _: errors.Bug(), but=KeyError), failures.expected(LOG, "x", on=ValueError),
    failures.accepted(ValueError, lambda _: True), failures.accepted(KeyError, lambda error: error.args == ("y",)),
    failures.parked(pytest.fail, on=ValueError), failures.parked(pytest.fail, on=LookupError, but=KeyError),
    failures.best_effort(LOG, "%s"), failures.best_effort(LOG, "%s", on=LookupError, but=KeyError),
    failures.keep_running(LOG, "failed", but=KeyError)])
def test_policy_when_the_error_is_not_for_it_then_it_passes(policy: AbstractContextManager[None],
                                                           caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyError) as raised, policy:
        raise KeyError("x")
    assert raised.value.__context__ is None
    assert not caplog.records


@pytest.mark.parametrize("policy", [failures.best_effort(LOG, "%s"), failures.keep_running(LOG, "failed"),
                                    failures.on_failure(pytest.fail)])
def test_policy_when_the_thread_is_killed_then_the_end_passes(policy: AbstractContextManager[None]) -> None:
    with pytest.raises(Ended), policy:
        raise Ended


def test_policy_when_the_block_succeeds_then_nothing_is_done() -> None:
    with failures.on_failure(pytest.fail, on=BaseException), failures.reported_to(pytest.fail, on=BaseException), \
            failures.keep_running(LOG, "failed"), failures.best_effort(LOG, "%s"):
        pass


def test_best_effort_when_the_block_fails_then_the_error_is_logged_last(caplog: pytest.LogCaptureFixture) -> None:
    with failures.best_effort(LOG, "no %s: %s", "port", level=logging.ERROR, extra={"server": "s"}):
        raise errors.NotFound("gone")
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "no port: gone")
    assert record.exc_info is None
    assert vars(record)["server"] == "s"


def test_best_effort_when_it_logs_then_the_record_names_the_caller(caplog: pytest.LogCaptureFixture) -> None:
    with failures.best_effort(LOG, "%s"):
        raise errors.NotFound
    [record] = caplog.records
    assert record.filename == "test_failures.py"
    assert record.funcName == inspect.stack()[0].function


def test_expected_when_the_block_fails_then_the_text_is_logged_without_the_error(
        caplog: pytest.LogCaptureFixture) -> None:
    with failures.expected(LOG, "port %s is gone", "p", on=KeyError):
        raise KeyError("x")
    [record] = caplog.records
    assert (record.levelname, record.getMessage(), record.filename) == ("INFO", "port p is gone", "test_failures.py")


def test_accepted_when_the_condition_holds_then_the_work_goes_on() -> None:
    with failures.accepted(OSError, lambda error: error.errno == 2):
        raise FileNotFoundError(2, "no such file")


def test_parked_when_the_block_fails_then_the_error_is_passed_on_and_the_work_goes_on() -> None:
    left: list[ValueError] = []
    with failures.parked(left.append, on=ValueError):
        raise ValueError("x")
    assert [str(error) for error in left] == ["x"]


def test_keep_running_when_the_block_has_a_bug_then_its_traceback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with failures.keep_running(LOG, "job %s failed", "a"):
        _ = {}["x"]
    [record] = caplog.records
    assert (record.levelname, record.getMessage(), record.filename) == ("ERROR", "job a failed", "test_failures.py")
    assert record.exc_info is not None and record.exc_info[0] is KeyError


def test_keep_running_when_it_has_a_level_then_only_the_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with failures.keep_running(LOG, "job %s failed: %s", "a", level=logging.WARNING):
        raise ValueError("x")
    [record] = caplog.records
    assert (record.levelname, record.getMessage(), record.exc_info) == ("WARNING", "job a failed: x", None)


def test_on_failure_when_the_block_fails_then_it_is_undone_and_the_error_raised() -> None:
    undone: list[str] = []
    with pytest.raises(ValueError, match="first"), failures.on_failure(lambda: undone.append("x")):
        raise ValueError("first")
    assert undone == ["x"]


def test_on_failure_when_it_is_for_one_error_then_others_do_not_undo() -> None:
    with pytest.raises(ValueError), failures.on_failure(pytest.fail, on=errors.Conflict):
        raise ValueError


def _broken(error: BaseException) -> Callable[[], None]:
    def undo() -> None:
        raise error
    return undo


def test_on_failure_when_undoing_fails_then_its_error_is_raised_in_the_context_of_the_first() -> None:
    with pytest.raises(KeyError) as raised, failures.on_failure(_broken(KeyError("second"))):
        raise ValueError("first")
    assert isinstance(raised.value.__context__, ValueError)


def test_on_failure_when_it_is_quiet_then_the_first_error_is_raised() -> None:
    with pytest.raises(ValueError, match="first"), failures.on_failure(_broken(KeyError("second")), quiet=True):
        raise ValueError("first")
    with pytest.raises(Ended), failures.on_failure(_broken(Ended()), quiet=True):
        raise ValueError("first")


def test_failure_of_when_the_call_fails_then_it_is_the_error_with_its_traceback() -> None:
    error = failures.failure_of(int, "x", base=10)
    assert isinstance(error, ValueError) and error.__traceback__ is not None
    assert failures.failure_of(int, "1") is None
    with pytest.raises(Ended):
        failures.failure_of(_broken(Ended()))


def test_reported_to_when_the_block_fails_then_the_error_is_passed_on_and_raised() -> None:
    told: list[Exception] = []
    with pytest.raises(ValueError) as raised, failures.reported_to(told.append, on=ValueError):
        raise ValueError
    assert told == [raised.value]
