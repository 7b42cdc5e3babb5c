"""The files from which a configuration is loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from oslo_config import cfg

#: Section -> option -> values, as written in the files.
Values = Mapping[str, Mapping[str, Sequence[str]]]


class Sources(NamedTuple):
    """The sources of options, apart from the command line and the environment."""

    files: tuple[str, ...]
    folders: tuple[str, ...]

    @classmethod
    def of(cls, options: cfg.ConfigOpts) -> Sources:
        """Return the sources that ``options`` were loaded from."""
        return cls(paths(options.config_file), paths(options.config_dir))

    def values(self) -> Values:
        """Return every option in the files, with names normalized as oslo.config compares them."""
        found: dict[str, dict[str, list[str]]] = {}
        for path in self.all_files():
            raw: dict[str, dict[str, list[str]]] = {}
            cfg.ConfigParser(path, raw).parse()
            for section, options in raw.items():
                kept = found.setdefault(normal(section), {})
                for name, values in options.items():
                    kept.setdefault(name.replace("-", "_"), []).extend(values)
        return found

    def all_files(self) -> list[str]:
        """Return all readable files, including those in the directories."""
        within = [os.path.join(folder, name) for folder in self.folders for name in sorted(os.listdir(folder))
                  if name.endswith(".conf")]
        return [path for path in (*self.files, *within) if os.access(path, os.R_OK)]


def paths(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the paths of ``config_file`` or ``config_dir``: one, several or none."""
    return (os.fspath(given),) if isinstance(given, str) else tuple(given or ())


def normal(section: str) -> str:
    """Return a section's name as oslo.config compares it."""
    return section if section.upper() == "DEFAULT" else section.lower()


def unreadable(error: Exception, files: Sequence[str]) -> str:
    """Return the sentence about an unreadable file; of an invalid line it contains only the number."""
    if isinstance(error, cfg.ConfigFilesNotFoundError):
        return f"cannot find the configuration file {', '.join(error.config_files)}: correct --config-file"
    if isinstance(error, cfg.ConfigFilesPermissionDeniedError):
        return f"{', '.join(error.config_files)} cannot be read: its mode or owner denies access to this user"
    if isinstance(error, cfg.ConfigDirNotFoundError):
        return f"there is no directory {error.config_dir}: correct --config-dir"
    for path in [error.config_file] if isinstance(error, cfg.ConfigFileParseError) else files:
        try:
            cfg.ConfigParser(path, {}).parse()
        except cfg.ParseError as found:
            return f"{path}, line {found.lineno}: {found.msg}. Each line must be [SECTION], NAME = VALUE, or a comment"
        except UnicodeError:
            return f"{path} is not valid UTF-8: save it as UTF-8"
        except OSError as found:
            return f"{path} cannot be read: {found.strerror}. Name a file with --config-file"
    return f"the configuration cannot be read ({type(error).__name__}): check --config-file and --config-dir"
