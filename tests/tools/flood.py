#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""flood.py N: N channels that cannot connect, each of which makes some five events."""

import struct
import sys

import genl

CHANNEL_NEW, NAME, ADDR, PORT = 6, 2, 3, 4

netlink = genl.Genl()
family = genl.uint(netlink.family("kdirect")[genl.FAMILY_ID])
for i in range(int(sys.argv[1])):
    attributes = (
        genl.attr(NAME, f"flood{i}\0".encode())
        + genl.attr(ADDR, bytes([203, 0, 113, 1]))
        + genl.attr(PORT, struct.pack("=H", 1))
    )
    try:
        netlink.request(family, CHANNEL_NEW, attributes)
    except genl.KernelError as error:
        print(error)  # too many at a time: those before it end soon
