"""A database's URL in the nova.conf of a daemon that opens no database: one warning, and nothing left of the value."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
CANARY = "s3cret-of-the-database"
URLS = (f"[DEFAULT]\ntransport_url = rabbit://h/\n[database]\nconnection = mysql+pymysql://nova:{CANARY}@db/nova\n"
        f"slave_connection = mysql+pymysql://nova:{CANARY}@db2/nova\n"
        f"[api_database]\nconnection = mysql+pymysql://nova:{CANARY}@db/nova_api\n")
#: What a program remembers of its configuration, as JSON: how many texts have the word, and what it would log.
REMEMBERS = """
import gc, json, sys
from nova import configuration, service
from nova.configuration import database_urls
binary, path, again = sys.argv[1:]
options = configuration.read(binary, ["--config-file", path])
if again == "again":
    service.reload_levels(options)
word = "-of-the-database"
gc.collect()
texts = [text for one in gc.get_objects() for text in gc.get_referents(one) if isinstance(text, str)]
found = {text for text in texts if word in text and text != word and "gc.get" not in text}
print(json.dumps([len(found), options.database.connection is None, database_urls.warning(options.source, binary)]))
"""


def remembered(folder: Path, binary: str, text: str = URLS, again: str = "") -> tuple[int, bool, str]:
    path = folder / "nova.conf"
    path.write_text(text)
    done = subprocess.run([sys.executable, "-c", REMEMBERS, binary, str(path), again], cwd=TOP, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    count, unset, warning = json.loads(done.stdout.splitlines()[-1])
    return count, unset, warning


@pytest.mark.parametrize("again", ["", "again"])
@pytest.mark.parametrize("binary", ["nova-api", "nova-compute", "nova-novncproxy", "nova-scheduler"])
def test_url_in_the_file_of_a_daemon_without_databases_when_it_is_read_then_nothing_of_it_stays_in_memory(
        tmp_path: Path, binary: str, again: str) -> None:
    count, unset, warning = remembered(tmp_path, binary, again=again)
    assert (count, unset) == (0, True)
    assert warning.startswith(", ".join(f"[{section}]{name} in {tmp_path}/nova.conf" for section, name in (
        ("database", "connection"), ("database", "slave_connection"), ("api_database", "connection"))))
    assert "the value is ignored" in warning and CANARY not in warning


def test_url_when_the_conductor_reads_it_then_it_is_kept_without_a_warning(tmp_path: Path) -> None:
    count, unset, warning = remembered(tmp_path, "nova-conductor")
    assert count > 0 and not unset and not warning


def test_url_that_cannot_be_parsed_when_another_daemon_reads_it_then_it_is_ignored_too(tmp_path: Path) -> None:
    text = URLS.replace("mysql+pymysql://nova:", "mysql+pymysql://nova:$nothing/")
    assert remembered(tmp_path, "nova-scheduler", text)[:2] == (0, True)


def test_file_without_urls_when_it_is_read_then_there_is_no_warning(tmp_path: Path) -> None:
    assert remembered(tmp_path, "nova-api", "[database]\nmax_pool_size = 5\n")[2] == ""
