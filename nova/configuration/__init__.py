"""Configuration loading for every program: daemons, WSGI applications, and operators' tools.

Each configuration error becomes one sentence (the option, its file, the problem, a valid form) and exit
status 2. No sentence contains a part of a value.
"""

from nova.configuration.origin import sentence
from nova.configuration.reading import beside, fail, load, own_files, program, read
from nova.configuration.validation import check_again, check_libraries, explained

__all__ = ["beside", "check_again", "check_libraries", "explained", "fail", "load", "own_files", "program", "read",
           "sentence"]
