"""What unit tests start chooses its own mode: a conductor on SQLite must not be green only because its test is."""

import os

from nova import concurrency

os.environ.pop(concurrency.SWITCH, None)
