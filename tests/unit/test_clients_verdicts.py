"""What is told of clients' own tests against nova-all, and the lists of what is known not to pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients import ansible_play, gophercloud, suites
from tests.clients.judges import JUDGES, LISTS
from tests.clients.verdict import Known, Ran, known, verdict

CAUSE = "no volumes here"
FAILS, SLOW = Known("a.B.test_volume_*", CAUSE, True), Known("a.B.test_slow", "waits for minutes", False)
GO = """=== RUN   TestOne
    tools.go:72: {
--- PASS: TestOne (1.20s)
=== RUN   TestTwo
    x_test.go:12: making it
    \x1b[1;31mconvenience.go:35: Failure in x_test.go, line 12: expected 1, got 2\x1b[0;0m
--- FAIL: TestTwo (0.10s)
=== RUN   TestThree
    conditions.go:65: skipping test in short mode
--- SKIP: TestThree (0.00s)
FAIL
"""


def test_verdict_when_tests_pass_fail_and_skip_then_each_is_where_it_belongs() -> None:
    results = [Ran("a.B.test_one", "success"), Ran("a.B.test_two", "fail", "1 != 2"),
               Ran("a.B.test_volume_boot", "fail", "no Cinder"), Ran("a.B.test_three", "skip", "no Swift")]
    found = verdict(results, [FAILS, SLOW], "list")
    assert found.passed == ("a.B.test_one",) and found.failed == {"a.B.test_two": "1 != 2"}
    assert found.known == {"a.B.test_volume_boot": CAUSE} and found.skipped == {"a.B.test_three": "no Swift"}
    assert found.untried == ("a.B.test_slow",) and found.counts == (1, 1, 3)
    assert found.line("judge", 1.4) == "judge: 1 passed, 2 failed (1 known), 1 skipped, 1 not tried in 1 s"


def test_verdict_when_a_known_failure_passes_then_the_list_is_wrong() -> None:
    found = verdict([Ran("a.B.test_volume_boot", "success")], [FAILS], "x.txt")
    assert found.counts == (0, 1, 0) and "take it out of x.txt" in found.failed["a.B.test_volume_boot"]


@pytest.mark.parametrize("status, counts", [("skip", (0, 0, 1)), ("fail", (0, 0, 1))])
def test_verdict_when_one_of_a_pattern_did_not_pass_then_the_line_stays(status: str, counts: tuple[int, ...]) -> None:
    assert verdict([Ran("a.B.test_volume_boot", status)], [FAILS], "x.txt").counts == counts


def test_verdict_when_a_known_test_has_gone_then_its_line_fails() -> None:
    found = verdict([Ran("a.B.test_one", "success")], [FAILS], "x.txt")
    assert "is there such a test" in found.failed[FAILS.pattern]


def test_known_when_read_then_a_comment_is_the_cause_of_the_lines_below_it(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("# Cinder: no\n# volumes.\na.one\n- a.two\n\n# Other.\nb.*\n")
    assert known(tmp_path / "x.txt") == [Known("a.one", "Cinder: no volumes.", True),
                                         Known("a.two", "Cinder: no volumes.", False), Known("b.*", "Other.", True)]


def test_known_when_a_line_has_no_cause_then_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("# Cinder.\na.one\n\na.two\n")
    with pytest.raises(ValueError, match="a.two has no comment"):
        known(tmp_path / "x.txt")


@pytest.mark.parametrize("judge", JUDGES)
def test_lists_when_read_then_every_judge_has_one_and_every_line_a_cause(judge: str) -> None:
    lines = known(LISTS / f"{judge}.txt")
    assert len({one.pattern for one in lines}) == len(lines) and all(one.cause for one in lines)


def test_gophercloud_when_its_output_is_read_then_each_test_has_its_last_words() -> None:
    one, two, three = gophercloud.parsed(GO)
    assert one == Ran("TestOne", "success") and (three.name, three.status) == ("TestThree", "skip")
    assert two.status == "fail" and two.reason.endswith("expected 1, got 2") and "\x1b" not in two.reason


def test_play_when_a_task_fails_then_its_words_are_the_reason_and_all_tasks_have_names() -> None:
    report = {"plays": [{"tasks": [
        {"task": {"name": "make it"}, "hosts": {"localhost": {"changed": True}}},
        {"task": {"name": "see it"}, "hosts": {"localhost": {"failed": True, "msg": "no such server"}}}]}]}
    assert ansible_play.parsed(report) == [Ran("make it", "success"), Ran("see it", "fail", "no such server")]
    names = ansible_play.tasks()
    assert len(names) == len(set(names)) > 25


def test_shares_when_a_class_is_not_said_to_stand_alone_then_its_tests_stay_in_one_process() -> None:
    names = [*(f"m.Flavors.test_{number}" for number in range(3)), *(f"m.Servers.test_{number}" for number in range(5))]
    shares = suites.shares_of(names, ("Servers",), 2)
    assert sorted(name for share in shares for name in share) == sorted(names)
    assert [len(share) for share in shares] == [4, 4]
    assert len([share for share in shares if any("Flavors" in name for name in share)]) == 1
