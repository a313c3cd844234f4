#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Goes on until it is ended; the ended-* cases of run do that.

echo "hangs"
sleep inf
