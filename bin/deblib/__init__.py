"""Implementation of `bin/build-debs`: the table of packages, their trees, their scripts, the Python environment.

The packages are built with dpkg-deb only. debhelper and dh-virtualenv would need a debian/ folder for sixteen packages
that differ in a name, and they run builds of their own. A table and three short scripts replace them.
"""
