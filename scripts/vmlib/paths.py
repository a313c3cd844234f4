# SPDX-License-Identifier: GPL-2.0-only
"""Where things are."""

import os

SCRIPTS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TOP = os.path.dirname(SCRIPTS)
GUEST = os.path.join(SCRIPTS, "guest")
BUILD = os.path.join(TOP, "build")
LOGS = os.path.join(BUILD, "vm")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.environ.get("KDIRECT_CACHE") or os.path.join(base, "kdirect")
    os.makedirs(path, exist_ok=True)
    return os.path.realpath(path)
