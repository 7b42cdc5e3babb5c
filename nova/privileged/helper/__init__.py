"""The helper: it does for nova-compute and nova-network, which run as ``nova``, what root alone may.

``table`` has all that can be asked of it, by name. Every argument has a type that says what it may be, and is checked
here: whoever asks may be a daemon that a thief has taken over. There is no call that runs a given command, writes a
given file, or gives away what is not in a guest's folder. Paths lie below the folders that the helper's own
configuration names, and are followed by descriptors, never twice by name. A test asks each call for what it must not
do.
"""
