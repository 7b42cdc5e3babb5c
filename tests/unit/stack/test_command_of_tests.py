"""Which parts `bin/test` runs, by the words behind it."""

from __future__ import annotations

import pytest

from testlib import command, parts


@pytest.mark.parametrize(("given", "named", "words"), [
    ("", (), []),
    ("unit", ("unit",), []),
    ("check unit", ("check", "unit"), []),
    ("unit check unit", ("unit", "check"), []),
    ("check unit functional machine fresh", ("check", "unit", "functional", "machine", "fresh"), []),
    ("unit -k ledger -x", ("unit",), ["-k", "ledger", "-x"]),
    ("unit tests/unit/rpc", ("unit",), ["tests/unit/rpc"]),
    ("fresh unit", ("fresh",), ["unit"]),  # a case
    ("fresh nothing-systemd unit", ("fresh",), ["nothing-systemd", "unit"]),
    ("tempest --nova-all", ("tempest",), ["--nova-all"]),
    ("fuzz 60", ("fuzz",), ["60"]),
    ("mutations --quick OSSA-2011-001", ("mutations",), ["--quick", "OSSA-2011-001"]),
    ("turns functional unit --within 0", ("turns",), ["functional", "unit", "--within", "0"])])
def test_words_when_names_of_parts_lead_then_the_rest_is_the_one_parts(given: str, named: tuple[str, ...],
                                                                       words: list[str]) -> None:
    assert command.read(given.split()) == (named, words, False)


@pytest.mark.parametrize(("given", "named", "words"), [
    ("long", (), []), ("long unit", ("unit",), []), ("long unit functional", ("unit", "functional"), []),
    ("long unit -x", ("unit",), ["-x"]), ("long fresh unit", ("fresh",), ["unit"])])
def test_words_when_long_leads_then_everything_of_the_named_parts_runs(given: str, named: tuple[str, ...],
                                                                       words: list[str]) -> None:
    assert command.read(given.split()) == (named, words, True)


@pytest.mark.parametrize(("given", "said"), [
    ("units", "'units' is not a part"), ("-x", "'-x' is not a part"),
    ("check unit -k ledger", "must follow the one part"), ("check fresh unit", "must follow the one part"),
    ("check long", "long must precede"), ("long -x", "bin/test long PART"),
    ("unit turns", "turns runs alone"), ("unit bench", "bench runs alone")])
def test_words_when_it_is_unclear_what_they_are_for_then_they_are_refused(given: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        command.read(given.split())


def test_packages_when_several_parts_are_named_then_they_are_those_of_each_alone() -> None:
    alone = [parts.needs((name,)) for name in ("unit", "functional", "fuzz", "clients")]
    assert {*parts.needs(("unit", "functional", "fuzz", "clients"))} == {one for needs in alone for one in needs}
    assert parts.needs(("clients",), quick=True) == () and parts.needs(("mutations",), quick=True) == ("tests",)
    assert parts.needs(("check",)) == ()
