"""A stack of several cells: what each further one has of its own, and what the first one keeps."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nova.configuration import reading
from nova.rpc import host_rights
from stacklib import cli, databases, nova, novaconf, rabbitmq, summary, up
from stacklib.errors import StackError
from stacklib.layout import FIRST, Cell, Choices, Layout
from stacklib.stack import Stack
from stacklib.stages import Progress

SECOND = Cell(2)


def choices(*words: str) -> Choices:
    return cli.choices(cli.parser().parse_args(["up", *words]))


@pytest.fixture
def layout(make_layout) -> Layout:
    return make_layout(sandbox=True, driver="fake", computes=5, cells=3, neutron="api")


# --- the options


def test_up_when_cells_are_said_then_each_has_a_host_and_networks_are_neutrons():
    assert choices("--sandbox", "--driver", "fake", "--cells", "3") == Choices(
        sandbox=True, driver="fake", computes=3, cells=3, neutron="api")
    assert choices("--sandbox", "--cells", "2").hosts == 2
    assert choices("--sandbox", "--driver", "fake", "--cells", "2", "--computes", "5").computes == 5
    assert choices("--cells", "1") == Choices()
    assert Choices(cells=2).differences(Choices()) == ["cells"]  # a second up changes no number of cells
    assert "--cells" in cli.SHAPE


@pytest.mark.parametrize("number", ["0", "x", "100", "-1", "2.5"])
def test_up_when_the_number_of_cells_is_none_then_one_line_says_which_are(capsys, number):
    with pytest.raises(SystemExit):
        choices("--sandbox", f"--cells={number}")
    assert f"--cells: {number!r} is not a number from 1 to 99" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("words", "message"), [
    (("--sandbox", "--driver", "fake", "--cells", "3", "--computes", "2"), "at least 3 hosts"),
    (("--sandbox", "--cells", "3", "--hosts", "2"), "at least 3 hosts"),
    (("--driver", "fake", "--cells", "2"), "only in sandboxes"),
    (("--sandbox", "--cells", "2", "--as-upstream"), "bounded security mode"),
    (("--sandbox", "--cells", "2", "--auth", "noauth2"), "--cells is tested only with Keystone"),
    (("--sandbox", "--cells", "2", "--database", "postgresql"), "--cells is tested only with Keystone")])
def test_up_when_the_cells_cannot_be_then_refused(words, message):
    with pytest.raises(StackError, match=message) as caught:
        choices(*words)
    assert "\n" not in caught.value.message


# --- what each cell has


def test_hosts_then_they_are_spread_over_the_cells_in_turns(layout, make_layout):
    assert [[host.name for host in layout.computes_of(cell)] for cell in layout.cells] == [
        ["fake1", "fake4"], ["fake2", "fake5"], ["fake3"]]
    rooms = make_layout(sandbox=True, hosts=3, cells=2)
    assert [host.cell.number for host in rooms.computes] == [1, 2, 1]
    assert {host.cell for host in make_layout(driver="fake", computes=3).computes} == {FIRST}


def test_databases_then_each_further_cell_has_its_own_with_a_user_of_its_own(layout, make_layout, secrets):
    sql = databases.mariadb_setup(layout, secrets)
    assert "GRANT ALL PRIVILEGES ON `nova_cell2`.* TO 'nova_cell2'@'%'" in sql
    assert "`nova`.* TO 'nova_cell2'" not in sql and "`nova_cell2`.* TO 'nova_cell3'" not in sql
    assert "nova_cell" not in databases.mariadb_setup(make_layout(driver="fake", computes=3), secrets)


def test_broker_then_a_cells_hosts_and_conductor_reach_their_own_vhost_alone(layout, secrets):
    made = rabbitmq.definitions(layout, secrets)
    vhosts: dict[str, set[str]] = {}
    for row in made["permissions"]:
        vhosts.setdefault(row["user"], set()).add(row["vhost"])
    assert vhosts["host-fake1"] == vhosts["host-controller"] == {"nova-hosts"}
    assert vhosts["host-fake2"] == vhosts["nova-conductor-cell2"] == {"nova-hosts-cell2"}
    assert vhosts["nova-conductor"] == {"nova", "nova-hosts"}
    assert {row["vhost"] for row in made["topic_permissions"] if row["user"] == "host-fake3"} == {"nova-hosts-cell3"}
    limits = {user["name"]: user.get("limits") for user in made["users"]}
    assert limits["host-fake2"] == host_rights.LIMITS and limits["nova-conductor-cell2"] is None


def test_compute_conf_then_it_names_the_vhost_of_its_cell(layout, secrets):
    urls = [novaconf.compute(layout, secrets, host)["DEFAULT"]["hosts_transport_url"] for host in layout.computes]
    assert [url.rpartition("/")[2] for url in urls] == [
        "nova-hosts", "nova-hosts-cell2", "nova-hosts-cell3", "nova-hosts", "nova-hosts-cell2"]


def test_conductor_of_a_cell_then_it_has_its_own_urls_and_no_other_cells_passwords(layout, secrets):
    conf = novaconf.cell_conductor(layout, secrets, SECOND)
    assert not {"api_database", "image_proxy"} & conf.keys() and "transport_url" not in conf["DEFAULT"]
    assert conf["database"]["connection"] == databases.url(layout, secrets, "nova_cell2")
    assert conf["DEFAULT"]["host"] == "controller-cell2"
    assert conf["DEFAULT"]["hosts_transport_url"].endswith("/nova-hosts-cell2")
    whole = novaconf.own(layout, secrets, "nova-conductor")
    assert conf["conductor"] == whole["conductor"] and conf["neutron"] == whole["neutron"]
    text = novaconf.text(conf)
    assert not [name for name in ("db-nova", "rabbit-nova", "rabbit-nova-conductor", "rabbit-nova-conductor-cell3",
                                  "db-nova_cell3") if secrets.password(name) in text]
    ports = {novaconf.cell_conductor(layout, secrets, cell)["monitoring"]["port"] for cell in layout.further_cells}
    assert ports == {"9702", "9703"}


def test_control_conf_when_a_cell_has_one_host_then_a_resize_may_stay_there(layout, make_layout, secrets):
    assert "allow_resize_to_same_host" in novaconf.control(layout, secrets)["DEFAULT"]
    even = make_layout(sandbox=True, driver="fake", computes=4, cells=2)
    assert "allow_resize_to_same_host" not in novaconf.control(even, secrets)["DEFAULT"]


def test_daemons_then_each_further_cell_has_a_conductor_with_files_of_its_own(layout, secrets):
    made = nova.conductors(Stack(layout, secrets, control=None))
    assert [one.name for one in made] == ["nova-conductor", "nova-conductor-cell2", "nova-conductor-cell3"]
    assert {one.user for one in made} == {"nova-conductor"} and {one.room for one in made} == {"controller"}
    for cell, daemon in zip(layout.further_cells, made[1:], strict=True):
        files = [str(path) for path in novaconf.cell_files(layout, cell)]
        assert reading.files_of(reading.beside(daemon.argv, "nova-conductor")) == files  # also not the one next to it


# --- the steps


class RecordingStack(Stack):
    """Runs no program: ``control`` keeps the words of each, and is the list of recorded cells."""

    def directory(self, *parts: str, owner: str | None = None, mode: int = 0o750, group: str | None = None) -> Path:
        """Nobody's: a test may not change owners."""
        return super().directory(*parts, mode=mode)

    def command(self, name: str, argv: list[str], **_more: object) -> str:
        words = list(map(str, argv))
        self.control.append(words)
        if "enroll" in words:
            pattern = words[words.index("--write") + 1]
            for host in words[words.index("enroll") + 1:words.index("--runs")]:
                Path(pattern.replace("{host}", host)).write_text("token\n")
        return " ".join(ran[ran.index("--name") + 1] for ran in self.control if "create_cell" in ran)


@pytest.fixture
def stack(short_path: Path, secrets, monkeypatch: pytest.MonkeyPatch) -> RecordingStack:
    monkeypatch.setattr(shutil, "chown", lambda *_: None)
    monkeypatch.setenv("NOVA_STACK_VENVS", str(short_path))
    made = RecordingStack(Layout(short_path, Choices(sandbox=True, driver="fake", computes=3, cells=2)), secrets, [])
    for name in ("controller", *(host.name for host in made.layout.computes)):
        made.layout.nova_state(name).mkdir(parents=True, exist_ok=True)
    return made


def test_files_then_those_of_a_cell_are_in_its_own_directory_and_secrets_in_the_conductors_alone(
        stack, monkeypatch: pytest.MonkeyPatch):
    written: dict[Path, tuple[str, int]] = {}
    monkeypatch.setattr(nova, "write_private", lambda path, text, mode=0o600, **_: written.update({path: (text, mode)}))
    nova.write_files(stack, own_users=True)
    shared, own = (written[path] for path in novaconf.cell_files(stack.layout, SECOND))
    assert shared == written[novaconf.control_file(stack.layout)] and "rabbit://" not in shared[0]
    assert own[1] == 0o600 and "nova_cell2" in own[0]
    assert not [path for path, (text, _mode) in written.items() if "nova_cell2" in text and text != own[0]]


def test_tables_then_a_further_cell_has_its_own_made_by_its_own_files(stack):
    nova.prepare_databases(stack)
    [words] = [ran for ran in stack.control if "--local_cell" in ran]
    assert reading.files_of(words) == [str(path) for path in novaconf.cell_files(stack.layout, SECOND)]
    assert nova.prepare_databases(stack) == "unchanged"


def test_records_then_the_first_cell_comes_first_and_no_password_is_on_a_command_line(stack):
    assert nova.record_cells(stack) == "cell1, cell2"
    made = [ran for ran in stack.control if "create_cell" in ran]
    assert [ran[ran.index("--name") + 1] for ran in made] == ["cell1", "cell2"]
    first = [str(novaconf.control_file(stack.layout)), str(novaconf.conductor_file(stack.layout))]
    second = [str(path) for path in novaconf.cell_files(stack.layout, SECOND)]  # later files overrule earlier ones
    assert [reading.files_of(ran) for ran in made] == [first, first + second]
    assert not [ran for ran in made if "://" in " ".join(ran)]
    assert nova.record_cells(stack) == "unchanged"


def test_records_when_an_up_was_killed_after_one_was_made_then_it_is_not_made_again(stack):
    nova.record_cells(stack)
    stack.layout.path("stamps", "recorded-cell2").unlink()
    count = len([ran for ran in stack.control if "create_cell" in ran])
    assert nova.record_cells(stack) == "cell2"
    assert len([ran for ran in stack.control if "create_cell" in ran]) == count


def test_hosts_then_each_is_enrolled_in_its_cell(stack):
    assert set(nova.enroll(stack).split(", ")) == {"controller", "fake1", "fake2", "fake3"}
    cells = {host: ran[ran.index("--cell") + 1] for ran in stack.control
             for host in ran[ran.index("enroll") + 1:ran.index("--runs")]}
    assert cells == {"controller": "cell1", "fake1": "cell1", "fake2": "cell2", "fake3": "cell1"}


def test_hosts_when_there_is_one_cell_then_none_is_named(stack, secrets):
    one = RecordingStack(Layout(stack.layout.state, Choices(sandbox=True, driver="fake", computes=3)), secrets, [])
    nova.enroll(one)
    assert one.control and not [ran for ran in one.control if "--cell" in ran]


def test_stages_then_cells_are_recorded_before_conductors_start_and_one_cell_is_not(layout, make_layout, secrets):
    def found(of: Layout) -> dict[str, tuple[str, ...]]:
        return {one.name: one.after for one in up._our_stages(Stack(of, secrets, control=None), None)}
    several = found(layout)
    assert several["nova cells"] == ("nova tables",) and "nova cells" in several["nova conductor"]
    assert "nova cells" not in found(make_layout(sandbox=True, driver="fake"))


def test_summary_then_it_has_a_line_for_each_cell(layout, make_layout, secrets):
    text = summary.text(Stack(layout, secrets, control=None), Progress(quiet=True), whole=False)
    assert "Cells" not in text  # nova does not run
    assert summary._cells(layout) == ["  cell1      nova-conductor: fake1, fake4",
                                      "  cell2      nova-conductor-cell2: fake2, fake5",
                                      "  cell3      nova-conductor-cell3: fake3"]
    assert ", 3 cells" in up.describe(layout.choices, layout.state)
    assert "cells" not in up.describe(make_layout(sandbox=True).choices, layout.state)
