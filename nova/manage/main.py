"""nova-manage: administrative commands for operators.

Command tables: (category, action) -> function, help, arguments. Exit codes: 0 done; 1 an error; 2 invalid command line,
wrong configuration or no command; 3 nothing to do (``db purge``, ``cleanup drop``, ``x509 revoke``). For ``placement``
see its module.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Collection, Sequence

from nova import concurrency, configuration, context
from nova.cmd import tool_ending, tool_log
from nova.configuration.tool_arguments import add_common, words_with_databases
from nova.manage import host_commands
from nova.manage.command import Command
from nova.manage.command_table import COMMANDS, SINGLE

LOG = logging.getLogger(__name__)

BINARY = "nova-manage"


def parser(words: Collection[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line. ``command`` is the selected row; missing if none is selected. ``words``: a
    command line; only the commands that it can mean are imported, and the help lists the others by their names."""
    top = argparse.ArgumentParser(prog=BINARY, description="Administrative commands of nova.", allow_abbrev=False,
                                  epilog="The database URLs are read from nova-conductor.conf next to nova.conf.")
    add_common(top)
    categories = top.add_subparsers(dest="category", metavar="COMMAND")
    for name, make in SINGLE.items():
        if words is None or name in words:
            _add(categories.add_parser, name, make())
        else:
            categories.add_parser(name)
    for category, make_actions in COMMANDS.items():
        if words is not None and category not in words:
            categories.add_parser(category)
            continue
        actions = make_actions()
        of_category = categories.add_parser(category, help=", ".join(actions))
        of_category.set_defaults(print_help=of_category.print_help)
        actions_of = of_category.add_subparsers(dest="action", metavar="ACTION")
        for name, command in actions.items():
            _add(actions_of.add_parser, name, command)
    return top


def parser_for(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for a command line: a whole one if it may print the list of all commands."""
    named = {word for word in words if word in COMMANDS or word in SINGLE}
    return parser(named) if named and not {"-h", "--help"} & set(words) else parser()


def _add(add_parser: Callable[..., argparse.ArgumentParser], name: str, command: Command) -> None:
    one = add_parser(name, help=command.help, description=command.help)
    for flags, options in command.arguments:
        one.add_argument(*flags, **options)
    one.set_defaults(command=command)


def main(argv: Sequence[str] | None = None) -> int:
    """Run nova-manage and return its exit code. ``argv`` None: the command line. An error is printed as a sentence on
    standard error, with exit code 1, or 2 for an error in the configuration."""
    words = sys.argv[1:] if argv is None else argv
    top = parser_for(words)
    given = top.parse_args(words)
    if getattr(given, "command", None) is None:
        getattr(given, "print_help", top.print_help)()
        return 2
    concurrency.patch("threads")
    options = configuration.load(BINARY, words_with_databases(given))
    tool_log.set_up(options, BINARY, given.log_words, keeps_one=True)

    def work() -> int:
        with context.entered(context.internal()):
            return given.command.run(options, given)
    code = tool_ending.status(options, BINARY, work, post_mortem=given.post_mortem)
    LOG.info("%s, run by %s, ended with %d", " ".join((given.category, getattr(given, "action", ""))).strip(),
             host_commands.who(), code)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
