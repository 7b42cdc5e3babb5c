"""How the tools of operators end: an exit status, and one sentence on standard error where something is wrong."""

from __future__ import annotations

import logging
import os
import pdb
import sys
from collections.abc import Callable

from oslo_config import cfg

from nova import configuration, errors
from nova.conf.base import Options

LOG = logging.getLogger(__name__)

CONFIGURATION = 2  # the exit status where no other try helps


def status(options: Options, binary: str, work: Callable[[], int], failed: int = 1, post_mortem: bool = False) -> int:
    """That of ``work``; ``failed`` for an error, 2 for one of the configuration. An error of ours is raised, after a
    look at it with Python's debugger (``post_mortem``)."""
    try:
        return work()
    except errors.config.Wrong as error:
        return _say(binary, configuration.sentence(options, error), CONFIGURATION)
    except errors.NovaError as error:
        return _say(binary, described(error), failed)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # at its end Python would write once more
        return 1
    except Exception as error:
        if isinstance(error, cfg.Error | ValueError) and (wrong := configuration.explained(options, error)) is not None:
            return _say(binary, wrong.message, CONFIGURATION)
        if (refused := _refused(error)) is not None:
            return _say(binary, f"The database refuses what was asked of it: {refused}", failed)
        if post_mortem:
            pdb.post_mortem(error.__traceback__)
        raise


def described(error: errors.NovaError) -> str:
    """The message, with the reason that operators alone may read."""
    from nova.db.sql.engine import DatabaseAway

    return f"{error.message} ({error.reason})" if isinstance(error, DatabaseAway) and error.reason else error.message


def _refused(error: Exception) -> str | None:
    from nova.db.sql.engine import refusal

    return refusal(error)


def _say(binary: str, sentence: str, code: int) -> int:
    sys.stderr.write(f"{binary}: {sentence}\n")
    LOG.debug("the error", exc_info=True)
    return code
