"""Words: the documents have short sentences without idioms, and the check finds the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import prose

LONG = " ".join(["word"] * prose.LONGEST)


@pytest.mark.parametrize("text", [
    f"{LONG}.",
    f"{LONG[5:]} ``nova-manage host show HOST``.",
    f"{LONG}. W{LONG[1:]}. Is it so? ``nova-manage doctor`` looks. (It does.) It ends.",
    f"Code is not read::\n\n    {LONG} word\n",
    "``comes along`` is a literal, and ``one that`` too.",
    ", ".join(["``a name``"] * 31),
    "Henceforth, lessons and asto are other words.",
    "Volumes come with the release. Two of them are there.",
    f"A dash - or two — is no word: {LONG[:-35]}.",
], ids=["longest", "literal", "several", "code", "literal-idiom", "names", "part-of-a-word", "plain", "dash"])
def test_faults_when_the_prose_is_plain_then_there_is_none(text: str) -> None:
    assert list(prose.faults(text)) == []


@pytest.mark.parametrize("text", [
    f"Word {LONG}.",
    f"* An item.\n* ``nova-manage host show`` {LONG}.",
    f".. list-table::\n\n   * - Cell\n     - Word {LONG}\n",
    f"A short one. Word *{LONG}*, as ``a. B`` says. Another.",
], ids=["paragraph", "item", "cell", "emphasis"])
def test_faults_when_a_sentence_is_too_long_then_it_is_named_with_its_words(text: str) -> None:
    found, = prose.faults(text)
    assert f" words: make sentences of at most {prose.LONGEST}" in found.advice
    assert LONG in found.sentence and "Another" not in found.sentence


@pytest.mark.parametrize(("sentence", "phrase"), [
    ("Nova-network, which comes along, is used.", "comes along"),
    ("The server is\non its way down.", "on its way"),
    ("Said twice, it changes nothing.", "Said twice"),
    ("A host is a *machine*, one that has guests.", "one that"),
    ("Where nobody listens, it waits.", "Where nobody"),
    ("It asks, and so does the conductor.", "and so does"),
], ids=lambda value: value.split()[0] if value[0].isupper() else None)
def test_faults_when_a_sentence_has_an_idiom_then_it_says_what_to_write(sentence: str, phrase: str) -> None:
    found, = prose.faults(f"All is well. {sentence} All is well.")
    assert found.sentence == sentence.replace("\n", " ").replace("*", "")
    assert f'"{phrase}": ' in found.advice and found.advice.partition(": ")[2]


def test_main_when_a_page_has_a_fault_then_it_names_page_and_sentence(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.rst", tmp_path / "bad.rst"
    good.write_text("All is well.\n")
    bad.write_text("It goes without.\n")
    assert prose.main([str(good)]) == 0 and capsys.readouterr().out == ""
    assert prose.main([str(good), str(bad)]) == 1
    assert capsys.readouterr().out == 'bad.rst: the phrase "goes without": does not need\n    It goes without.\n'


@pytest.mark.parametrize("page", prose.PAGES, ids=lambda page: page.name)
def test_page_has_short_sentences_and_no_idioms(page: Path) -> None:
    found = list(prose.faults(page.read_text()))
    assert not found, f"{page.relative_to(prose.TOP)} has words to change:\n" + "\n".join(map(str, found))
