"""Adds the tree of an installation (`data`, see tools/packaging/stage), which pip puts into the environment's prefix:
the command looks for its libraries in `../lib`."""

import os

from setuptools import setup

files = []
for folder, _, names in sorted(os.walk("data")):
    if names:
        sources = [os.path.join(folder, name) for name in sorted(names)]
        files.append((os.path.relpath(folder, "data"), sources))
setup(data_files=files)
