"""A daemon's command line as operators and start scripts write it: dashes or underscores, today's names or old ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oslo_config import cfg

from nova import errors
from nova.configuration.wanted import problem


def spelt(words: Sequence[str], options: Sequence[cfg.Opt]) -> list[str]:
    """The words, with each option's name as it is declared."""
    names = dict(_spellings(options))
    made = []
    for word in words:
        name, equals, value = word.partition("=")
        made.append(f"{names.get(_plain(name), name)}{equals}{value}")
    return made


def names(option: cfg.Opt) -> list[str]:
    """Today's name and the old ones, as they are declared."""
    return [option.name, *(old.name for old in option.deprecated_opts if old.name)]


def _spellings(options: Sequence[cfg.Opt]) -> Iterator[tuple[str, str]]:
    """(``--some-name`` with dashes, the word as it is declared), of old names and of ``--no...`` too."""
    for option in options:
        for name in names(option):
            yield _plain(f"--{name}"), f"--{name}"
            if isinstance(option, cfg.BoolOpt):
                yield _plain(f"--no{name}"), f"--no{name}"


def _plain(word: str) -> str:
    return word.replace("_", "-") if word.startswith("--") else word


def typed(words: Sequence[str], options: Sequence[cfg.Opt]) -> frozenset[str]:
    """The options that the words give a value to, by attribute. config.Unusable for a value that is none: the parser of
    command lines would repeat it."""
    by_word: Mapping[str, cfg.Opt] = {
        f"--{name}": option for option in options for name in names(option)}
    given = set()
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        option = by_word.get(name)
        if option is None or isinstance(option, cfg.BoolOpt) or not equals and index + 1 == len(words):
            continue
        given.add(option.dest)
        text = value if equals else words[index + 1]
        try:
            option.type(text)
        except ValueError:
            raise errors.config.Unusable(option=f"the command line's {name}", reason=problem(option, text)) from None
    return frozenset(given)
