"""Prose in the code: docstrings begin with a verb or a noun phrase, and messages and help have no idioms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import code_prose, prose

PARTS = sorted({path.relative_to(prose.TOP) for top in ("nova", "bin/stacklib", "bin/testlib", "tests/docs_parts")
                for path in (prose.TOP / top).iterdir() if path.suffix == ".py" or path.is_dir()})
LONG = " ".join(["word"] * (prose.LONGEST + 1))


@pytest.mark.parametrize("text", [
    "Return the hosts.", "True if it runs.", "The hosts of a zone.", "Hosts that report.", "``X``: a name.",
    "Best-effort events: none is sent twice.", "Delete it. Raises host.NotFound.", "NUMA nodes of a host.",
    "Run it::\n\n        what is code is not read\n\n    Then end.", "Say ``what is`` to it.",
    "Each service is no longer up.",
], ids=lambda text: text.split("\n")[0])
def test_faults_when_a_docstring_states_the_fact_first_then_there_is_none(text: str) -> None:
    assert list(code_prose.faults(f'def f():\n    """{text}"""\n')) == []


@pytest.mark.parametrize(("text", "advice"), [
    ("What a host has.", "an interrogative"), ("Whether it runs.", "an interrogative"),
    ("As it runs.", "a preposition"),
    ("Until it ends.", "a conjunction"), ("Its hosts.", "a pronoun"), ("Nothing is left.", "a pronoun"),
    ("No host has it.", "a negation"), ("host.NotFound, Unavailable.", "begins with errors"),
    ("Wait until nobody asks.", "the user, process or host"), ("Delete whatever it has.", "the user, thing or place"),
    ("Show what is left.", "name the thing"), ("Start it anew.", "again"), ("It can not run.", "cannot"),
    ("Raise if this is no uuid.", "is not a valid"), (f"Return {LONG}.", "words: make sentences"),
    ("Return it and let go.", "release"),
], ids=lambda text: text[:30])
def test_faults_when_a_docstring_hides_the_fact_then_the_advice_says_how(text: str, advice: str) -> None:
    found = list(code_prose.faults(f'def f():\n    """{text}"""\n'))
    assert found and any(advice in fault.advice for fault in found) and {fault.line for fault in found} == {2}


@pytest.mark.parametrize("source", [
    'LOG.info("nobody asks %s", host)', 'X = kinds.Invalid.row("a.code", "{path} is no policy file")',
    'add("--yes", help="what is to be done")', 'LOG.error(f"{host} can not run")',
    'cfg.IntOpt("wait", help="Seconds. " + "Whoever waits, waits.")',
])
def test_faults_when_a_message_or_help_has_an_idiom_then_it_is_found(source: str) -> None:
    [fault, *_more] = code_prose.faults(source)
    assert fault.line == 1


@pytest.mark.parametrize("source", [
    'print("nobody")', 'X = {"what is": "anew"}', 'LOG.info("%s is no longer up", host)'])
def test_faults_when_a_text_is_data_then_it_is_not_read(source: str) -> None:
    assert list(code_prose.faults(source)) == []


def test_main_when_a_module_has_a_fault_then_it_names_the_line(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text('"""Hosts of a zone."""\n')
    bad.write_text('"""Hosts of a zone."""\n\n\ndef f():\n    """As it is."""\n')
    assert code_prose.main([str(good)]) == 0 and capsys.readouterr().out == ""
    assert code_prose.main([str(tmp_path)]) == 1
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{bad}:5: the docstring begins with a preposition")


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_part_has_docstrings_messages_and_help_in_plain_english(part: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_prose.main([str(prose.TOP / part)]) == 0, capsys.readouterr().out
