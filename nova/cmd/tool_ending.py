"""Exit of operators' tools: an exit status, and one sentence on standard error for an error."""

from __future__ import annotations

import logging
import os
import pdb
import sys
from collections.abc import Callable

from oslo_config import cfg

from nova import configuration, errors
from nova.conf._options import Options, oslo_conf

LOG = logging.getLogger(__name__)

CONFIGURATION = 2  # exit status of errors that a retry does not cure


def status(options: Options, binary: str, work: Callable[[], int], failed: int = 1, post_mortem: bool = False) -> int:
    """Return the exit status of ``work``; ``failed`` for an error, 2 for an error in the configuration. A bug is
    raised, with ``post_mortem`` after a session of Python's debugger."""
    try:
        return work()
    except errors.config.Wrong as error:
        return _say(binary, configuration.sentence(oslo_conf(options), error), CONFIGURATION)
    except errors.NovaError as error:
        return _say(binary, described(error), failed)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # at exit Python would write again
        return 1
    except Exception as error:  # options, the database's library and bugs: raised again unless explained
        is_option = isinstance(error, cfg.Error | ValueError)
        if is_option and (wrong := configuration.explained(oslo_conf(options), error)) is not None:
            return _say(binary, wrong.message, CONFIGURATION)
        if (refused := _refused(error)) is not None:
            return _say(binary, f"The database refuses the statement: {refused}", failed)
        if post_mortem:
            pdb.post_mortem(error.__traceback__)
        raise


def described(error: errors.NovaError) -> str:
    """Return the message, with the reason that only operators may read."""
    from nova.db.sql.engine import DatabaseUnavailable

    if isinstance(error, DatabaseUnavailable) and error.reason:
        return f"{error.message} ({error.reason})"
    return error.message


def _refused(error: Exception) -> str | None:
    from nova.db.sql.engine import refusal

    return refusal(error)


def _say(binary: str, sentence: str, code: int) -> int:
    sys.stderr.write(f"{binary}: {sentence}\n")
    LOG.debug("the error", exc_info=True)
    return code
