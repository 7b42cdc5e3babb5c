from __future__ import annotations

import pytest

from stacklib import cli, commands, packages, stages, summary
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.stages import Progress, Stage


def parse(*words: str):
    return cli.parser().parse_args(list(words))


def test_up_when_nothing_is_said_then_the_machine_itself_with_libvirt_and_mariadb():
    assert cli.choices(parse("up")) == Choices()


def test_up_when_a_name_is_given_then_it_is_a_sandbox_wherever_the_name_stands():
    before, after = parse("--name", "a", "up", "--hosts", "2"), parse("up", "--hosts", "2", "--name", "a")
    assert cli.choices(before) == cli.choices(after) == Choices(sandbox=True, name="a", hosts=2)
    assert cli.choices(parse("--sandbox", "up")).sandbox and cli.choices(parse("up", "--sandbox")).sandbox


@pytest.mark.parametrize("words", [("up", "--hosts", "2"), ("up", "--computes", "2")])
def test_up_when_options_do_not_go_together_then_refused_with_what_to_say_instead(words):
    with pytest.raises(StackError) as caught:
        cli.choices(parse(*words))
    assert "--sandbox" in caught.value.hint


@pytest.mark.parametrize(
    "words",
    [
        ("up", "--hosts", "0"),
        ("up", "--driver", "xen"),
        ("install", "--parts", "beer"),
        ("kill", "-s", "NOPE", "x"),
        ("up", "--hosts", "many"),
        (),
    ],
)
def test_command_line_when_wrong_then_usage_and_status_two(words, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(*words)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_up_when_no_shape_is_said_then_a_stack_that_is_there_comes_up_as_it_was_made(short_path):
    there = Layout(short_path, Choices(sandbox=True, hosts=2, database="postgresql"))
    there.save()
    words = ["up", "--state", str(short_path)]
    assert cli.wanted(parse(*words), words) == there
    words += ["--sandbox", "--hosts=3"]
    assert cli.wanted(parse(*words), words).choices.hosts == 3


def test_exec_then_all_words_after_the_command_are_its_own():
    args = parse("exec", "--as", "demo", "openstack", "server", "list", "--long", "--name", "x")
    assert (args.user, args.argv) == ("demo", ["openstack", "server", "list", "--long", "--name", "x"])
    assert args.name is None


def test_install_parts_then_only_these():
    assert parse("install", "--parts", "broker,clients").parts == ("broker", "clients")
    assert parse("install").parts == packages.PARTS


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (59, "59s"), (60, "1m"), (7300, "2h"), (200000, "2d")])
def test_age_then_in_the_largest_unit(seconds, text):
    assert commands.age(seconds) == text


def run(*made: Stage) -> Progress:
    progress = Progress(quiet=True)
    stages.run(list(made), progress)
    return progress


def test_stages_then_each_after_what_it_waits_for_and_absent_ones_are_not_waited_for():
    order: list[str] = []

    def work(name):
        return lambda: order.append(name) or name

    progress = run(Stage("c", work("c"), ("b", "a")), Stage("b", work("b"), ("a", "gone")), Stage("a", work("a")))
    assert order == ["a", "b", "c"]
    assert set(progress.seconds) == {"a", "b", "c"}


def test_stages_when_one_fails_then_nothing_new_begins_and_the_first_error_is_raised():
    begun: list[str] = []

    def fails() -> str:
        raise StackError("no disk")

    with pytest.raises(StackError, match="no disk"):
        run(Stage("a", fails), Stage("b", lambda: begun.append("b") or "", ("a",)))
    assert begun == []


def test_stages_when_they_wait_for_each_other_then_an_error_instead_of_for_ever():
    with pytest.raises(StackError, match="depend on each other"):
        run(Stage("a", lambda: "", ("b",)), Stage("b", lambda: "", ("a",)))


def test_policy_rc_d_when_one_was_there_then_restored_with_its_mode(tmp_path, monkeypatch):
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(packages, "POLICY", policy)
    with packages.services_held_back():
        assert "exit 101" in policy.read_text()
    assert not policy.exists()
    policy.write_text("#!/bin/sh\nexit 0\n")
    policy.chmod(0o750)
    with pytest.raises(RuntimeError), packages.services_held_back():
        raise RuntimeError
    assert (policy.read_text(), policy.stat().st_mode & 0o777) == ("#!/bin/sh\nexit 0\n", 0o750)


def test_shared_storage_when_there_is_one_machine_then_it_is_refused():
    with pytest.raises(StackError, match="--shared-storage"):
        cli.choices(parse("up", "--shared-storage"))
    assert cli.choices(parse("up", "--sandbox", "--hosts", "2", "--shared-storage")).shared_storage is True


def test_summary_when_the_demo_server_has_a_console_then_its_address_and_how_to_get_another(make_layout):
    first, second = summary.screen_lines(make_layout(sandbox=True), "http://10.200.0.1:6080/vnc_auto.html?path=t")
    assert first == "  console  http://10.200.0.1:6080/vnc_auto.html?path=t"
    assert "valid for 10 minutes" in second and "exec --as demo openstack console url show demo" in second
    assert summary.screen_lines(make_layout(), "nova-api refused it: 409") == ["  console  nova-api refused it: 409"]
