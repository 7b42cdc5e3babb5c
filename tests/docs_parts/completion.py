"""``etc/completion/nova-manage``, from the command line of ``nova.manage``."""

from __future__ import annotations

from collections.abc import Iterator

from nova.manage import main
from tests.docs_parts import commands
from tests.docs_parts.commands import CommandLine

HEAD = """\
# Completion of nova-manage in bash. Generated from the code by `bin/test docs --write`: edit the code instead.
# bash reads it from share/bash-completion/completions; or source it.

_nova_manage() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local category="" action="" words="" valued="" index
    for ((index = 1; index < COMP_CWORD; index++)); do
        case ${COMP_WORDS[index]} in
"""
#: ``valued``: options with a value. Without candidates, bash completes file names.
MIDDLE = """\
                [[ ${COMP_WORDS[index + 1]} == "=" ]] && ((index++))
                ((index++)) ;;
            -*) ;;
            *) if [[ -z $category ]]; then
                   category=${COMP_WORDS[index]}
               elif [[ -z $action ]]; then
                   action=${COMP_WORDS[index]}
               fi ;;
        esac
    done
    case "$category $action" in
"""
END = """\
    esac
    [[ " $valued " == *" $before "* ]] && words=""
    case "$category $before" in
"""
TAIL = """\
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _nova_manage nova-manage
"""


def script() -> str:
    """Return the text of the file."""
    parser = main.parser()
    before, rows = commands.own(parser), list(commands.commands(parser))
    valued = [flag for argument in before.arguments if argument.value for flag in argument.flags]
    return "".join([HEAD, f"            {' | '.join(valued)})\n", MIDDLE, *_cases(before, rows), END, *_values(rows),
                    TAIL])


def _cases(before: CommandLine, rows: list[CommandLine]) -> Iterator[str]:
    """Yield the candidates of the next word, by the words before it."""
    by_category: dict[str, list[CommandLine]] = {}
    for row in rows:
        by_category.setdefault(row.words[0], []).append(row)
    yield _case('" "', [*by_category, *_flags(before, False)], _flags(before, True))
    for category, found in by_category.items():
        if len(found[0].words) > 1:
            yield _case(f'"{category} "', [row.words[1] for row in found], [])
        for row in found:
            pattern = f'"{category} {row.words[1]}"' if len(row.words) > 1 else f'"{category} "*'
            yield _case(pattern, _flags(row, False), _flags(row, True))


def _case(pattern: str, words: list[str], valued: list[str]) -> str:
    lines = [f"        {pattern}) words=\"{' '.join(words)}\""]
    lines += [f"            valued=\"{' '.join(valued)}\""] * bool(valued)
    return "\n".join(lines) + " ;;\n"


def _flags(row: CommandLine, valued: bool) -> list[str]:
    """Return all of a command's options, or only the options with a value."""
    return [flag for argument in row.arguments for flag in argument.flags if argument.value or not valued]


def _values(rows: list[CommandLine]) -> Iterator[str]:
    """Yield the candidates for values of options with choices."""
    for row in rows:
        for argument in row.arguments:
            for flag in argument.flags if argument.choices else ():
                yield f'        "{row.words[0]} {flag}") words="{" ".join(argument.choices)}" ;;\n'
