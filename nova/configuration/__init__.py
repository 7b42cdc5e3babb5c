"""Reads the configuration of every program: daemons, WSGI applications, and the tools of operators.

What is wrong in it becomes one sentence (which option, in which file, what is wrong, what to write) and exit status 2.
No sentence has a part of a value.
"""

from nova.configuration.origin import sentence
from nova.configuration.reading import beside, fail, load, own_files, program, read
from nova.configuration.trial import check_again, check_libraries, explained

__all__ = ["beside", "check_again", "check_libraries", "explained", "fail", "load", "own_files", "program", "read",
           "sentence"]
