"""What is told of a run of tempest, and its lists of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tempest import conf
from tests.tempest.outcome import TURNS, Result, judge, of_turn, patterns, reason, wanted

FOLDER = Path(__file__).resolve().parents[1] / "tempest"
CONTRACT = Path(__file__).resolve().parents[3] / "shared" / "contract" / "tempest_compute.txt"
TRACE = """Traceback (most recent call last):
  File "test_x.py", line 1, in test_one
    self.assertEqual(1, 2)
testtools.matchers._impl.MismatchError: 1 != 2
"""


def result(name: str, status: str = "success", **details: str) -> Result:
    return {"id": name, "status": status, "details": details}


def test_turns_when_all_have_been_then_every_test_ran_once_and_classes_stayed_whole() -> None:
    names = wanted(FOLDER / "compute.txt")
    turns = [of_turn(names, number) for number in range(7, 7 + TURNS)]
    assert sorted(name for turn in turns for name in turn) == sorted(names)
    owners = [{name.rpartition(".")[0] for name in turn} for turn in turns]
    assert not owners[0] & owners[1] and not owners[1] & owners[2]
    assert all(len(turn) > len(names) / TURNS / 2 for turn in turns)


def test_judge_when_tests_pass_fail_and_skip_then_each_has_its_reason() -> None:
    found = judge([result("a.B.test_one[id-1]"), result("a.B.test_two[id-2,smoke]", "fail", traceback=TRACE),
                   result("a.B.test_three[id-3]", "skip", reason="no such feature\n")],
                  ["a.B.test_one", "a.B.test_two", "a.B.test_three"])
    assert found.passed == ("a.B.test_one",) and found.counts == (1, 1, 1)
    assert found.failed == {"a.B.test_two": "testtools.matchers._impl.MismatchError: 1 != 2"}
    assert found.skipped == {"a.B.test_three": "no such feature"}


@pytest.mark.parametrize("status, kind", [("fail", "failed"), ("skip", "skipped")])
def test_judge_when_a_class_does_not_get_set_up_then_its_tests_did_not_pass(status: str, kind: str) -> None:
    whole = result("setUpClass (a.B)", status, reason="why", traceback="Traceback\n  x\nOSError: why\n")
    found = judge([whole], ["a.B.test_one"])
    assert "why" in getattr(found, kind)["a.B.test_one"] and not found.passed


def test_judge_when_a_named_test_is_not_among_the_results_then_it_failed() -> None:
    assert "did not run" in judge([result("a.B.test_one")], ["a.B.test_one", "a.B.test_gone"]).failed["a.B.test_gone"]


def test_judge_when_a_class_fails_to_be_taken_down_then_that_is_a_failure() -> None:
    found = judge([result("a.B.test_one"), result("tearDownClass (a.B)", "fail", traceback=TRACE)], ["a.B.test_one"])
    assert found.passed == ("a.B.test_one",) and "1 != 2" in found.failed["a.B"]


def test_judge_when_a_class_is_named_then_its_tests_count() -> None:
    assert judge([result("a.B.test_one[x]"), result("a.B.test_two")], ["a.B"]).counts == (2, 0, 0)


def test_reason_when_requests_were_logged_then_the_last_answer_is_told() -> None:
    log = "INFO Request (B:test_one): 200 GET http://x/a 0.1s\nINFO Request (B:test_one): 404 GET http://x/b 0.1s\n"
    assert reason(result("a.B.test_one", "fail", traceback=TRACE, pythonlogging=log)) == (
        "testtools.matchers._impl.MismatchError: 1 != 2 [last request: 404 GET http://x/b]")


def test_wanted_when_a_list_has_comments_and_tags_then_names_are_left(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# about\n\na.B.test_one[id-1]\na.B.test_two  # why\na.B.test_one\n")
    names = wanted(tmp_path / "list")
    assert names == ["a.B.test_one", "a.B.test_two"]
    assert patterns(names).splitlines()[0] == r"^a\.B\.test_one(\.|\[|$)"


def test_conf_when_a_value_has_a_dollar_then_it_is_no_reference() -> None:
    assert "admin_password = a$$b" in conf.text({"auth": {"admin_password": "a$b"}})


@pytest.mark.parametrize("driver, logs_in", [("fake", False), ("libvirt", True)])
def test_conf_when_guests_run_then_tempest_logs_in_to_them_at_their_network(driver: str, logs_in: bool) -> None:
    facts = conf.Facts("http://keystone/v3", "r", "pw", ("i1", "i2"), ("f1", "f2"), "private", 2, "/tmp/x", driver)
    for by_name in (False, True):
        validation = conf.settings(facts, by_name)["validation"]
        assert (validation["run_validation"], validation.get("network_for_ssh")) == (
            logs_in, "private" if logs_in else None)


def test_lists_when_taken_together_then_no_test_runs_that_waits_for_something() -> None:
    now, guests, neutron, later = (wanted(FOLDER / f"{name}.txt") for name in ("compute", "guests", "neutron", "later"))
    assert now and guests and neutron and not {*now, *guests, *neutron} & set(later)


def test_lists_when_taken_together_then_all_of_the_contracts_tests_are_there() -> None:
    if not CONTRACT.exists():
        pytest.skip("the contract's list is not here")
    assert set(wanted(CONTRACT)) <= {
        name for part in ("compute", "neutron", "later") for name in wanted(FOLDER / f"{part}.txt")}
