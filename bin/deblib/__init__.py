"""What `bin/build-debs` is made of: the table of packages, their trees, their scripts, the Python environment.

The packages are made by dpkg-deb alone. debhelper and dh-virtualenv would want a debian/ folder for sixteen packages
that differ in a name, and they run builds of their own. What is left of their work is a table and three short scripts.
"""
