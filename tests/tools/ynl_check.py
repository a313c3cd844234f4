#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds Documentation/netlink/kdirect.yaml and uapi/kdirect_netlink.h against each other, and
with --kernel the specification against the module that is loaded. Prints TAP."""

import argparse
import errno
import os
import struct
import sys

import genl
from ynl_spec import load_header, load_spec

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def check(self, name, complaints):
        """complaints: what is wrong; empty is ok."""
        self.count += 1
        print(f"{'not ok' if complaints else 'ok'} {self.count} - {name}")
        self.failed += bool(complaints)
        for complaint in complaints:
            print(f"# {complaint}")

    def done(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def differ(what, spec, other):
    return [] if spec == other else [f"{what}: specification {spec}, other {other}"]


def compare_header(tap, spec, family, header):
    tap.check(
        "family name, version and multicast group",
        differ("name", family.name, header.name)
        + differ("version", family.version, header.version)
        + differ("group", family.group, header.group),
    )
    tap.check(
        "attributes: names and order",
        differ("attributes", list(family.attributes), list(header.attributes)),
    )
    tap.check(
        "commands: names and order",
        differ("commands", list(family.operations), list(header.operations)),
    )
    tap.check("the same enums", differ("enums", sorted(family.enums), sorted(header.enums)))
    for name, enum in family.enums.items():
        tap.check(f"enum {name}", differ(name, enum, header.enums.get(name)))
    for name, attribute in family.attributes.items():
        other = header.attributes.get(name)
        complaints = []
        if other:
            complaints += differ("type", attribute.kind, other.kind)
            if attribute.kind != "binary":
                complaints += differ("range", attribute.checks, other.checks)
        tap.check(f"attribute {name}", complaints)
    for name, operation in family.operations.items():
        tap.check(f"operation {name}", differ(name, operation, header.operations.get(name)))
    (space,) = [s for s in spec["attribute-sets"] if "subset-of" not in s]
    tap.check(
        "everything is documented",
        [
            f"{item['name']} has no doc"
            for item in space["attributes"] + spec["operations"]["list"] + spec["definitions"]
            if not item.get("doc", "").strip()
        ],
    )


TYPE, MIN_VALUE, MAX_VALUE, MIN_LENGTH, MAX_LENGTH = 1, 4, 5, 6, 7


def compare_bounds(attribute, policy):
    """A policy has the bounds of the specification, or none: then the module checks itself."""
    checks = attribute.checks
    if attribute.kind in ("u8", "u16", "u32", "u64"):
        full = (0, (1 << int(attribute.kind[1:])) - 1)
        wanted = (checks.get("min", full[0]), checks.get("max", full[1]))
        found = (policy.get(MIN_VALUE, full[0]), policy.get(MAX_VALUE, full[1]))
        return [] if found in (full, wanted) else differ("range", wanted, found)
    complaints = []
    for key, number in (("min-len", MIN_LENGTH), ("max-len", MAX_LENGTH)):
        if key in checks and number in policy:
            complaints += differ(key, checks[key], policy[number])
    return complaints


def compare_policy(family, operation, policy, shared):
    """shared: the policy serves several commands, so it may know what this one ignores."""
    names = dict(enumerate(family.attributes, start=1))
    complaints = []
    for number, found in policy.items():
        name = names.get(number)
        if name not in operation.request and not shared:
            complaints.append(f"the kernel takes {name or number}")
            continue
        if name is None:
            complaints.append(f"the kernel knows an attribute {number}")
            continue
        attribute = family.attributes[name]
        if genl.KINDS.get(found.get(TYPE)) != attribute.kind:
            complaints.append(f"{name}: type {genl.KINDS.get(found.get(TYPE))}")
        complaints += [f"{name}: {c}" for c in compare_bounds(attribute, found)]
    missing = operation.request - {names.get(n) for n in policy}
    return complaints + [f"the kernel does not know {name}" for name in sorted(missing)]


CAP_DO, CAP_DUMP = 2, 4  # GENL_CMD_CAP_*


def compare_kernel(tap, family, netlink):
    try:
        found = netlink.family(family.name)
    except genl.KernelError as error:
        tap.check("the kernel has the family", [str(error)])
        return
    tap.check("version", differ("version", family.version, genl.uint(found[genl.VERSION])))
    groups = [genl.text(dict(genl.parse(g))[1]) for _, g in genl.parse(found[genl.MCAST_GROUPS])]
    tap.check("multicast groups", differ("groups", [family.group], groups))

    flags = {}
    for _, payload in genl.parse(found[genl.OPS]):
        op = {k: genl.uint(v) for k, v in genl.parse(payload)}
        flags[op[1]] = op[2]
    operations, policies = netlink.policies(genl.uint(found[genl.FAMILY_ID]))
    users = [do for do, _ in operations.values()]
    for number, (name, operation) in enumerate(family.operations.items(), start=1):
        if operation.event:
            tap.check(f"{name} is no request", ["the kernel takes it"] if number in flags else [])
            continue
        has = flags.pop(number, 0)
        complaints = differ("do", True, bool(has & CAP_DO))
        complaints += differ("dump", operation.dump, bool(has & CAP_DUMP))
        tap.check(f"{name}: flags", complaints)
        do = operations.get(number, (None, None))[0]
        if do is None:
            tap.check(f"{name}: policy", ["there is none"])
        else:
            shared = users.count(do) > 1
            complaints = compare_policy(family, operation, policies.get(do, {}), shared)
            tap.check(f"{name}: policy", complaints)
    tap.check("no further commands", [f"command {n}" for n in flags])


WIDTHS = {"u8": "=B", "u16": "=H", "u32": "=I"}


def probe(tap, family, netlink):
    """Values just outside each range are refused, with a text that names the attribute."""
    family_id = genl.uint(netlink.family(family.name)[genl.FAMILY_ID])
    numbers = {name: n for n, name in enumerate(family.attributes, start=1)}
    valid = {
        "NAME": b"ynl-check\0",
        "ADDR": bytes([127, 0, 0, 1]),
        "PORT": struct.pack("=H", 7471),
    }
    for number, (command, operation) in enumerate(family.operations.items(), start=1):
        if not command.endswith("_NEW"):
            continue
        for name in sorted(operation.request):
            attribute = family.attributes[name]
            outside = [attribute.checks["min"] - 1] if "min" in attribute.checks else []
            outside += [attribute.checks["max"] + 1] if "max" in attribute.checks else []
            width = WIDTHS.get(attribute.kind)
            for value in outside:
                if not width or value >= 1 << 8 * struct.calcsize(width):
                    continue
                values = valid | {name: struct.pack(width, value)}
                request = b"".join(genl.attr(numbers[n], v) for n, v in values.items())
                try:
                    netlink.request(family_id, number, request)
                    complaints = ["accepted"]
                except genl.KernelError as error:
                    complaints = []
                    if error.number not in (errno.ERANGE, errno.EINVAL):
                        complaints.append(f"refused with {error}")
                    plain = error.text.lower().replace("_", "-")
                    word = name.lower().replace("_", "-")
                    for unit in ("-ms", "-us", "-percent"):
                        word = word.removesuffix(unit)
                    if word not in plain and word.replace("-", " ") not in plain:
                        complaints.append(f"the text does not name it: '{error.text}'")
                tap.check(f"{command}: {name} {value} is refused", complaints)


def probe_permissions(tap, family, netlink):
    """Without privileges, changes get EPERM, and reading does not."""
    family_id = genl.uint(netlink.family(family.name)[genl.FAMILY_ID])
    numbers = {name: n for n, name in enumerate(family.attributes, start=1)}

    def error_of(number, operation):
        name = "NAME" if "NAME" in operation.request else "DEV_NAME"
        try:
            genl.Genl().request(family_id, number, genl.attr(numbers[name], b"ynl-check\0"))
        except genl.KernelError as error:
            return error.number
        return 0

    for number, (command, operation) in enumerate(family.operations.items(), start=1):
        if operation.event:
            continue
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os._exit(error_of(number, operation))
        found = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        wanted = errno.EPERM if operation.admin else errno.ENOENT
        tap.check(
            f"{command} of an ordinary user",
            differ("error", errno.errorcode[wanted], errno.errorcode.get(found, found)),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", default=f"{ROOT}/Documentation/netlink/kdirect.yaml")
    parser.add_argument("--header", default=f"{ROOT}/uapi/kdirect_netlink.h")
    parser.add_argument("--kernel", action="store_true", help="compare with the loaded module")
    parser.add_argument("--probe", action="store_true", help="send it bad requests (root)")
    arguments = parser.parse_args()

    tap = Tap()
    spec, family = load_spec(arguments.spec)
    compare_header(tap, spec, family, load_header(arguments.header))
    if arguments.kernel or arguments.probe:
        compare_kernel(tap, family, genl.Genl())
    if arguments.probe:
        probe(tap, family, genl.Genl())
        probe_permissions(tap, family, genl.Genl())
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
