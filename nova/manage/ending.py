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
from nova.manage.doctor.finding import described

LOG = logging.getLogger(__name__)

CONFIGURATION = 2  # the exit status where no other try helps


def status(options: Options, binary: str, work: Callable[[], int], failed: int = 1, post_mortem: bool = False) -> int:
    """That of ``work``; ``failed`` for an error, 2 for one of the configuration. An error of ours is raised, after a
    look at it with Python's debugger (``post_mortem``)."""
    try:
        return work()
    except errors.config.Wrong as error:
        return _told(binary, configuration.sentence(options, error), CONFIGURATION)
    except errors.NovaError as error:
        return _told(binary, described(error), failed)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # at its end Python would write once more
        return 1
    except Exception as error:
        if isinstance(error, cfg.Error | ValueError) and (wrong := configuration.explained(options, error)) is not None:
            return _told(binary, wrong.message, CONFIGURATION)
        if (refused := _refused(error)) is not None:
            return _told(binary, f"The database refuses what was asked of it: {refused}", failed)
        if post_mortem:
            pdb.post_mortem(error.__traceback__)
        raise


def _refused(error: Exception) -> str | None:
    from nova.db.engine import refusal

    return refusal(error)


def _told(binary: str, sentence: str, code: int) -> int:
    sys.stderr.write(f"{binary}: {sentence}\n")
    LOG.debug("the error", exc_info=True)
    return code
