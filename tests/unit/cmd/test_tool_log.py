"""nova-manage.log beside the daemons' logs, and no command that fails for it."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

TOP = Path(__file__).parents[3]
SECRET = "db-word-7"


def manage(tmp_path: Path, text: str, *words: str, module: str = "nova.manage.main"
           ) -> subprocess.CompletedProcess[str]:
    (tmp_path / "nova.conf").write_text(f"[DEFAULT]\n{text}[api_database]\nconnection = sqlite:///{tmp_path}/api\n")
    return subprocess.run([sys.executable, "-m", module, "--config-file", str(tmp_path / "nova.conf"), *words],
                          cwd=TOP, capture_output=True, text=True, timeout=120, check=False)


def test_log_when_there_is_a_folder_then_each_command_has_a_line_and_no_secret(tmp_path: Path) -> None:
    text = f"log_dir = {tmp_path}\nlog_file = nova-api.log\ndebug = true\n"
    codes = [manage(tmp_path, text, *words.split()).returncode for words in (
        "api_db version", f"cell_v2 create_cell --transport-url rabbit://n:{SECRET}@h", "db version")]
    log = tmp_path / "nova-manage.log"
    said = log.read_text()
    told = re.findall(r" (\w+ \w+), run by .* ended with (\d)\n", said)
    assert codes == [0, 1, 2] and told == [("api_db version", "0"), ("cell_v2 create_cell", "1"), ("db version", "2")]
    assert SECRET not in said and stat.S_IMODE(log.stat().st_mode) & ~0o640 == 0
    assert not (tmp_path / "nova-api.log").exists()


@pytest.mark.parametrize("way", ["no folder", "a folder in its place", "a link", "a pipe", "a full disk"])
def test_log_when_it_cannot_be_written_then_the_command_works_all_the_same(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "log"
    path = folder / "nova-manage.log"
    if way != "no folder":
        folder.mkdir()
    if way == "a folder in its place":
        path.mkdir()
    elif way == "a link":
        path.symlink_to(tmp_path / "elsewhere")
    elif way == "a pipe":
        os.mkfifo(path)
    elif way == "a full disk":
        path.symlink_to("/dev/full")
    done = manage(tmp_path, f"log_dir = {folder}\n", "api_db", "version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert not (tmp_path / "elsewhere").exists()


def test_log_when_the_command_line_names_a_file_then_it_is_written_or_the_program_ends_with_2(tmp_path: Path) -> None:
    asked = f"--log-file={tmp_path}/own.log"
    assert manage(tmp_path, "use_json = true\n", asked, "api_db", "version").returncode == 0
    assert "ended with 0" in json.loads((tmp_path / "own.log").read_text().splitlines()[-1])["message"]
    done = manage(tmp_path, "", "--log-dir=/nonexistent", "api_db", "version")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


@pytest.mark.parametrize(("words", "says_more"), [((), False), (("-d",), True)])
def test_debug_when_the_command_line_has_it_then_standard_error_tells_more(tmp_path: Path, words: tuple[str, ...],
                                                                          says_more: bool) -> None:
    done = manage(tmp_path, "debug = true\n", *words, "api_db", "version")
    assert done.returncode == 0 and ("ended with 0" in done.stderr) is says_more and "ended" not in done.stdout


@pytest.mark.parametrize(("module", "words"), [
    ("nova.manage.main", ["api_db", "version"]), ("nova.manage.status", ["upgrade", "check"]),
    ("nova.cmd.policy", ["policy", "check"])])
def test_folder_of_files_when_it_is_missing_then_one_line_and_2(tmp_path: Path, module: str, words: list[str]) -> None:
    done = manage(tmp_path, "", "--config-dir", f"{tmp_path}/nosuch", *words, module=module)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"there is no directory {tmp_path}/nosuch" in done.stderr


def test_files_of_a_folder_when_it_is_named_then_they_are_read_after_the_others(tmp_path: Path) -> None:
    for name, file in (("a", "late"), ("b", "later")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "01-nova.conf").write_text(f"[api_database]\nconnection = sqlite:///{tmp_path}/{file}\n")
    done = manage(tmp_path, "", "--config-dir", f"{tmp_path}/a", "--config-dir", f"{tmp_path}/b", "api_db", "version")
    assert done.returncode == 0 and (tmp_path / "later").exists() and not (tmp_path / "late").exists()
