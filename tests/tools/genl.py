# SPDX-License-Identifier: GPL-2.0-only
"""Just enough generic netlink to ask the kernel what a family is."""

import os
import socket
import struct

NETLINK_GENERIC = 16
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 10, 11
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSG_ERROR, NLMSG_DONE = 2, 3
GENL_ID_CTRL = 16
CTRL_CMD_GETFAMILY, CTRL_CMD_GETPOLICY = 3, 10
FAMILY_ID, FAMILY_NAME, VERSION, OPS, MCAST_GROUPS, POLICY, OP_POLICY = 1, 2, 3, 6, 7, 8, 9

KINDS = {
    1: "flag", 2: "u8", 3: "u16", 4: "u32", 5: "u64", 6: "s8", 7: "s16", 8: "s32", 9: "s64",
    10: "binary", 11: "string", 12: "string", 13: "nest", 14: "array-nest",
}  # fmt: skip


class KernelError(Exception):
    def __init__(self, number, text):
        super().__init__(f"{os.strerror(number)}: {text}")
        self.number = number
        self.text = text


def attr(kind, payload):
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + b"\0" * (-length % 4)


def parse(data):
    """[(type, payload)], in order."""
    found = []
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found.append((kind & 0x3FFF, data[4:length]))
        data = data[(length + 3) & ~3 :]
    return found


def uint(payload):
    return int.from_bytes(payload, "little" if struct.pack("=H", 1)[0] else "big")


def text(payload):
    return payload.split(b"\0")[0].decode()


def _error(flags, payload):
    (number,) = struct.unpack_from("=i", payload)
    message = ""
    if number and flags & NLM_F_ACK_TLVS:
        (length,) = struct.unpack_from("=I", payload, 4)
        start = 20 if flags & NLM_F_CAPPED else 4 + ((length + 3) & ~3)
        message = "".join(text(p) for kind, p in parse(payload[start:]) if kind == 1)
    return -number, message


class Genl:
    def __init__(self):
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self._socket.bind((0, 0))
        self._socket.settimeout(10)
        for option in (NETLINK_CAP_ACK, NETLINK_EXT_ACK):
            self._socket.setsockopt(SOL_NETLINK, option, 1)
        self._sequence = 0

    def request(self, family, command, attributes=b"", dump=False, version=1):
        """The attributes of each reply; raises KernelError."""
        self._sequence += 1
        flags = NLM_F_REQUEST | (NLM_F_DUMP if dump else NLM_F_ACK)
        body = struct.pack("=BBH", command, version, 0) + attributes
        head = struct.pack("=IHHII", 16 + len(body), family, flags, self._sequence, 0)
        self._socket.send(head + body)
        replies = []
        while True:
            data = self._socket.recv(1 << 17)
            while len(data) >= 16:
                length, kind, flags, sequence, _ = struct.unpack_from("=IHHII", data)
                payload, data = data[16:length], data[(length + 3) & ~3 :]
                if sequence != self._sequence:
                    continue
                if kind in (NLMSG_ERROR, NLMSG_DONE):
                    if kind == NLMSG_ERROR:
                        number, message = _error(flags, payload)
                    else:
                        number, message = -struct.unpack_from("=i", payload)[0], ""
                    if number:
                        raise KernelError(number, message)
                    return replies
                replies.append(parse(payload[4:]))

    def family(self, name):
        request = attr(FAMILY_NAME, name.encode() + b"\0")
        return dict(self.request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, request)[0])

    def policies(self, family):
        """({command: (do policy, dump policy)}, {policy: {attribute: {key: value}}})"""
        operations, policies = {}, {}
        request = attr(FAMILY_ID, struct.pack("=H", family))
        for reply in self.request(GENL_ID_CTRL, CTRL_CMD_GETPOLICY, request, dump=True):
            for kind, payload in reply:
                if kind == OP_POLICY:
                    for command, indexes in parse(payload):
                        found = {k: uint(v) for k, v in parse(indexes)}
                        operations[command] = (found.get(1), found.get(2))
                elif kind == POLICY:
                    for index, attributes in parse(payload):
                        for number, keys in parse(attributes):
                            policies.setdefault(index, {})[number] = {
                                k: uint(v) for k, v in parse(keys)
                            }
        return operations, policies
