#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Sends the loaded module requests that no tool would send, and sees that it refuses
them and goes on. Prints TAP."""

import errno
import os
import random
import re
import socket
import struct
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "tools"))
sys.dont_write_bytecode = True

import genl  # noqa: E402

NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLA_F_NESTED = 0x8000


def enums():
    """Numbers of the commands and attributes, from the header."""
    with open(os.path.join(TOP, "uapi", "kdirect_netlink.h"), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    found = {}
    for body in re.findall(r"enum kdirect_(?:cmd|attr) \{(.*?)\}", text, flags=re.S):
        names = [name.strip() for name in body.split(",") if name.strip()]
        found.update({name: number for number, name in enumerate(names)})
    return found


K = enums()


def cmd(name):
    return K["KDIRECT_CMD_" + name]


def attr(name, payload, nested=False, length=None):
    kind = (K["KDIRECT_A_" + name] if isinstance(name, str) else name) | (
        NLA_F_NESTED if nested else 0
    )
    size = 4 + len(payload) if length is None else length
    return struct.pack("=HH", size, kind) + payload + b"\0" * (-len(payload) % 4)


NAME = attr("NAME", b"abuse\0")
ADDR = attr("ADDR", bytes([192, 0, 2, 1]))
PORT = attr("PORT", struct.pack("=H", 7999))


class Tap:
    count = failed = 0

    def check(self, text, good, detail=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}")
        if not good:
            print(f"# {detail}")


class Raw:
    """Sends bytes as they are; the errno of the answer, 0, or None if nothing comes."""

    def __init__(self, family):
        self.family = family

    def send(self, command, body, flags=NLM_F_REQUEST | NLM_F_ACK, version=1, length=None):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as sock:
            sock.bind((0, 0))
            sock.settimeout(5)
            payload = struct.pack("=BBH", command & 0xFF, version, 0) + body
            size = 16 + len(payload) if length is None else length
            sock.send(struct.pack("=IHHII", size, self.family, flags, 1, 0) + payload)
            while True:
                try:
                    data = sock.recv(65536)
                except socket.timeout:
                    return None
                kind = struct.unpack_from("=H", data, 4)[0]
                if kind == 2:
                    return -struct.unpack_from("=i", data, 16)[0]
                if kind == 3:
                    return 0


def refused(tap, raw, text, command, body, *wanted, **more):
    found = raw.send(command, body, **more)
    names = [errno.errorcode[w] for w in wanted]
    tap.check(
        text,
        found is not None and found != 0 and (not wanted or found in wanted),
        f"got {errno.errorcode.get(found, found)}, wanted {names or 'an error'}",
    )


def channel_new(tap, raw):
    new = cmd("CHANNEL_NEW")
    whole = [("NAME", NAME), ("ADDR", ADDR), ("PORT", PORT)]
    for missing, _ in whole:
        body = b"".join(data for name, data in whole if name != missing)
        refused(tap, raw, f"CHANNEL_NEW without {missing}", new, body, errno.EINVAL)
    base = NAME + ADDR + PORT
    for size in (0, 1, 3, 5, 8, 15, 17, 64, 1000):
        refused(
            tap, raw, f"an address of {size} bytes", new,
            NAME + attr("ADDR", bytes([10] * size)) + PORT, errno.EINVAL, errno.ERANGE,
        )  # fmt: skip
        refused(
            tap, raw, f"a source of {size} bytes", new,
            base + attr("SRC_ADDR", bytes([10] * size)), errno.EINVAL, errno.ERANGE,
        )  # fmt: skip
    refused(tap, raw, "a source of the other family", new,
            base + attr("SRC_ADDR", bytes([0xFD] * 16)), errno.EINVAL)  # fmt: skip
    for size in (0, 1, 4, 8):
        refused(tap, raw, f"a port of {size} bytes", new,
                NAME + ADDR + attr("PORT", b"\x01" * size), errno.EINVAL, errno.ERANGE)  # fmt: skip
    for number in ("QUEUES", "POLL_QUEUES"):
        for value in (65, 255, 65535):
            refused(tap, raw, f"{number} {value}", new,
                    base + attr(number, struct.pack("=H", value)), errno.ERANGE)  # fmt: skip
    refused(tap, raw, "no queue at all", new, base + attr("QUEUES", b"\0\0"), errno.ERANGE)
    limits = {
        "DEPTH": (0, 1025), "MAX_MESSAGE": (0, 4095, 1048577), "EAGER_LIMIT": (0, 255, 65537),
        "KEEP_ALIVE_MS": (1, 99, 60001), "CONNECT_TIMEOUT_MS": (0, 99, 120001),
        "DRAIN_TIMEOUT_MS": (0, 9, 60001),
    }  # fmt: skip
    for name, values in limits.items():
        for value in (*values, 0x80000000, 0xFFFFFFFF):
            refused(tap, raw, f"{name} {value}", new,
                    base + attr(name, struct.pack("=I", value)), errno.ERANGE)  # fmt: skip
        for size in (0, 1, 2, 3, 8):
            refused(tap, raw, f"{name} of {size} bytes", new,
                    base + attr(name, b"\x01" * size), errno.EINVAL, errno.ERANGE)  # fmt: skip
    for name in (b"", b"\0", b"1\0", b"a/b\0", b"..\0", b"a\nb\0", b"\xff\0", b"a" * 32,
                 b"a" * 32 + b"\0", b"a" * 60000, b"a\0b\0"):  # fmt: skip
        found = raw.send(new, attr("NAME", name) + ADDR + attr("PORT", b"\0\0"))
        tap.check(f"the name {name[:12]!r} of {len(name)} bytes",
                  found in (errno.EINVAL, errno.ERANGE), errno.errorcode.get(found, found))  # fmt: skip


def listener_new(tap, raw):
    new = cmd("LISTENER_NEW")
    base = NAME + ADDR + PORT
    prefix = attr("PREFIX_ADDR", bytes([10, 0, 0, 0]))

    def bits(value):
        return attr("PREFIX_LEN", bytes([value]))

    bad = {
        "an empty allow": b"",
        "an allow without length": prefix,
        "an allow without address": bits(8),
        "a prefix of 33 bits": prefix + bits(33),
        "a prefix of 255 bits": prefix + bits(255),
        "a prefix of 5 bytes": attr("PREFIX_ADDR", bytes(5)) + bits(8),
        "a prefix of no bytes": attr("PREFIX_ADDR", b"") + bits(0),
        "garbage in a nest": b"\x03\x00\xff\xff",
        "an attribute of the outer level": prefix + bits(8) + PORT + b"\xff",
    }
    for text, nest in bad.items():
        refused(tap, raw, text, new, base + attr("ALLOW", nest, nested=True))
    good = attr("ALLOW", prefix + bits(8), nested=True)
    refused(tap, raw, "65 allows", new, base + good * 65)
    refused(tap, raw, "1000 allows", new, base + good * 1000)
    refused(tap, raw, "a nest that is not marked", new, base + attr("ALLOW", prefix + bits(8)))
    for name, values in {"MAX_CHANNELS": (0, 1025), "MAX_DEPTH": (0, 1025)}.items():
        for value in (*values, 0xFFFFFFFF):
            refused(tap, raw, f"{name} {value}", new,
                    base + attr(name, struct.pack("=I", value)), errno.ERANGE)  # fmt: skip
    for value in (0, 65, 65535):
        refused(tap, raw, f"MAX_QUEUES {value}", new,
                base + attr("MAX_QUEUES", struct.pack("=H", value)), errno.ERANGE)  # fmt: skip


def shapes(tap, raw):
    """What is wrong with the message itself."""
    for command in (0, K["__KDIRECT_CMD_MAX"], 200, 255):
        refused(tap, raw, f"command {command}", command, b"", errno.EOPNOTSUPP)
    refused(tap, raw, "EVENT is no request", cmd("EVENT"), b"", errno.EOPNOTSUPP)
    for command in ("DEVICE_GET", "LISTENER_GET", "CHANNEL_GET", "STATS_GET", "CHANNEL_DEL",
                    "LISTENER_DEL", "CHANNEL_SET", "LISTENER_SET"):  # fmt: skip
        refused(tap, raw, f"{command} without a name", cmd(command), b"", errno.EINVAL)
    get = cmd("CHANNEL_GET")
    for kind in (0, 1, K["__KDIRECT_A_MAX"], 0x3FFF):
        refused(tap, raw, f"attribute {kind}", get, NAME + attr(kind, b"1234"))
    refused(tap, raw, "an attribute that ends behind the message", get,
            attr("NAME", b"abuse\0", length=400), errno.EINVAL)  # fmt: skip
    for length in (0, 1, 3):
        refused(tap, raw, f"an attribute of length {length}", get,
                NAME + attr("NAME", b"abuse\0", length=length))  # fmt: skip
    refused(tap, raw, "trailing bytes", get, NAME + b"\x01\x02\x03")
    refused(tap, raw, "a big-endian attribute", get, attr(0x4000 | K["KDIRECT_A_NAME"], b"x\0"))
    # Twice the same: one of them is taken, or it is refused.
    found = raw.send(get, NAME + attr("NAME", b"other\0"))
    tap.check("two names", found in (errno.ENOENT, errno.EINVAL), found)
    refused(tap, raw, "a name without its zero byte", get, attr("NAME", b"abuse"))
    # Dumps take no attributes; with some they must neither fail badly nor hang.
    for command in ("DEVICE_GET", "LISTENER_GET", "CHANNEL_GET", "STATS_GET"):
        found = raw.send(cmd(command), b"", flags=NLM_F_REQUEST | NLM_F_DUMP)
        tap.check(f"{command} dump", found == 0, found)
        found = raw.send(cmd(command), attr(0x3FFF, b"x" * 2000), flags=NLM_F_REQUEST | NLM_F_DUMP)
        tap.check(f"{command} dump with garbage ends", found is not None, found)
    for command in ("CHANNEL_NEW", "CHANNEL_DEL", "LISTENER_NEW", "CHANNEL_SET"):
        refused(tap, raw, f"{command} as a dump", cmd(command), NAME + ADDR + PORT,
                flags=NLM_F_REQUEST | NLM_F_DUMP)  # fmt: skip


def noise(tap, raw, rounds):
    """Random messages: none may do anything."""
    rng = random.Random(1)
    answered = 0
    for _ in range(rounds):
        body = b""
        for _ in range(rng.randrange(8)):
            payload = rng.randbytes(rng.choice((0, 1, 2, 4, 4, 4, 8, 16, 40, 300)))
            body += attr(rng.randrange(K["__KDIRECT_A_MAX"] + 2), payload, rng.random() < 0.2)
        if rng.random() < 0.3:
            body = body[: rng.randrange(len(body) + 1)]
        flags = NLM_F_REQUEST | NLM_F_ACK | (NLM_F_DUMP if rng.random() < 0.2 else 0)
        answered += raw.send(rng.randrange(14), body, flags, rng.randrange(3)) is not None
    tap.check(f"each of {rounds} random messages is answered", answered == rounds, answered)


def flood(tap, family):
    """A dump that is not read, closed in the middle; many requests in one datagram."""
    for _ in range(50):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as sock:
            sock.bind((0, 0))
            body = struct.pack("=BBH", cmd("CHANNEL_GET"), 1, 0)
            sock.send(struct.pack("=IHHII", 16 + len(body), family,
                                  NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body)  # fmt: skip
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as sock:
        sock.bind((0, 0))
        body = struct.pack("=BBH", cmd("CHANNEL_DEL"), 1, 0) + NAME
        one = struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body
        one += b"\0" * (-len(one) % 4)
        sock.send(one * 100)
    tap.check("floods do no harm", True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    tap = Tap()
    kernel = genl.Genl()
    family = genl.uint(kernel.family("kdirect")[genl.FAMILY_ID])
    raw = Raw(family)
    shapes(tap, raw)
    channel_new(tap, raw)
    listener_new(tap, raw)
    noise(tap, raw, rounds)
    flood(tap, family)
    found = raw.send(cmd("CHANNEL_GET"), NAME)
    tap.check("nothing was created", found == errno.ENOENT, errno.errorcode.get(found, found))
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
