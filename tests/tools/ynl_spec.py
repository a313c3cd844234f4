# SPDX-License-Identifier: GPL-2.0-only
"""The kdirect netlink family as the specification and as the C header describe it."""

import re
from dataclasses import dataclass, field

import yaml


def c_name(name):
    return name.upper().replace("-", "_")


@dataclass
class Enum:
    prefix: str
    entries: list  # in order, as written in C, without the prefix


@dataclass
class Attribute:
    kind: str  # type in the specification's words; "" if not told
    checks: dict = field(default_factory=dict)


@dataclass
class Operation:
    request: set = field(default_factory=set)
    reply: set = field(default_factory=set)
    dump: bool = False
    event: bool = False
    admin: bool = False


@dataclass
class Family:
    name: str
    version: int
    group: str
    enums: dict  # C name of the enum -> Enum
    attributes: dict  # C name -> Attribute, in order
    operations: dict  # C name -> Operation, in order


def load_spec(path):
    with open(path, encoding="utf-8") as file:
        spec = yaml.safe_load(file)
    family = spec["name"]
    enums = {}
    for definition in spec["definitions"]:
        name = definition["name"]
        entries = [e if isinstance(e, str) else e["name"] for e in definition["entries"]]
        enums[f"{family}_{name}".replace("-", "_")] = Enum(
            c_name(definition.get("name-prefix", f"{family}-{name}-")),
            [c_name(entry) for entry in entries],
        )
    (space,) = [s for s in spec["attribute-sets"] if "subset-of" not in s]
    attributes = {
        c_name(a["name"]): Attribute(a["type"], a.get("checks", {})) for a in space["attributes"]
    }
    operations = {}
    for op in spec["operations"]["list"]:
        def names(*keys, op=op):
            at = op
            for key in keys:
                at = at.get(key, {})
            return {c_name(n) for n in at.get("attributes", [])}

        operations[c_name(op["name"])] = Operation(
            names("do", "request"),
            names("do", "reply") | names("event"),
            dump="dump" in op,
            event="event" in op,
            admin="uns-admin-perm" in op.get("flags", []),
        )
    (group,) = spec["mcast-groups"]["list"]
    return spec, Family(
        family, spec.get("version", 1), group["name"], enums, attributes, operations
    )


def _strip_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def _entries(body, prefix):
    names = re.findall(r"^\s*(\w+)", _strip_comments(body), flags=re.M)
    return [n.removeprefix(prefix) for n in names if not n.startswith("__")]


_KINDS = {"binary", "flag", "nest", "string", "u8", "u16", "u32", "u64"}


def _attribute(name, comment):
    """What the comment behind an attribute says of type and range."""
    if name.startswith("STAT_"):
        return Attribute("u64")
    word = re.match(r"[a-z0-9]*", comment).group()
    kind = word if word in _KINDS else ""
    if name == "PAD":
        kind = "pad"
    checks = {}
    span = re.search(r"(\d+) \.\. (\d+)(?: or (\d+))?", comment)
    if span and kind == "string":
        checks["max-len"] = int(span.group(2))
    elif span:
        if int(span.group(1)) > 0 and "0 = off" not in comment:
            checks["min"] = int(span.group(1))
        checks["max"] = int(span.group(3) or span.group(2))
    return Attribute(kind, checks)


def _operations(text, attributes, commands):
    """The tree of attributes that the first comment of the header draws."""
    tree = text[text.index("Attributes (all") : text.index("* NEW, SET and DEL need")]
    blocks, name, part = {}, None, None
    for line in tree.splitlines():
        line = re.sub(r"^ \* ?", "", line)
        head = re.match(r" ([A-Z_]+) +(.*)", line)
        if head and head.group(1) in commands:
            name, part, line = head.group(1), "request", head.group(2)
            blocks[name] = {"request": "", "reply": ""}
        elif name and re.match(r" +reply ", line):
            part = "reply"
        if name:
            blocks[name][part] += line + " "

    def attributes_in(words):
        found = set()
        for token, star in re.findall(r"\b([A-Z][A-Z_]+)(\*?)", words):
            if token.endswith("_") and star:
                found |= {a for a in attributes if a.startswith(token)}
            elif token in attributes:
                found.add(token)
        return found

    operations = {}
    for name, block in blocks.items():
        request = re.sub(r"\(nest: [^)]*\)", "", block["request"])
        reply = re.sub(r"\(nest: [^)]*\)", "", block["reply"])
        op = Operation(attributes_in(request), attributes_in(reply))
        if "as in NEW" in reply:
            op.reply |= operations[name.replace("_GET", "_NEW")].request
        op.dump = "dump: none" in request
        op.event = "multicast group" in request
        if op.event:
            op.request, op.reply = set(), op.request
        op.admin = name.endswith(("_NEW", "_SET", "_DEL"))
        operations[name] = op
    return operations


def load_header(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    defines = dict(re.findall(r"^#define\s+(\w+)\s+\"?([\w.]+)\"?$", text, flags=re.M))
    bodies = dict(re.findall(r"^enum (\w+) \{\n(.*?)^\};", text, flags=re.M | re.S))
    commands = _entries(bodies.pop("kdirect_cmd"), "KDIRECT_CMD_")
    attribute_body = bodies.pop("kdirect_attr")
    comments = dict(
        re.findall(r"KDIRECT_A_(\w+),[ \t]*(?:/\*\s*(.*?)\*/)?", attribute_body, flags=re.S)
    )
    attributes = {n: _attribute(n, comments[n]) for n in _entries(attribute_body, "KDIRECT_A_")}
    enums = {}
    for name, body in bodies.items():
        entries = _entries(body, "")
        # The longest common prefix that ends in _.
        prefix = entries[0]
        while not all(e.startswith(prefix) for e in entries) or not prefix.endswith("_"):
            prefix = prefix[:-1]
        enums[name] = Enum(prefix, [e.removeprefix(prefix) for e in entries])
    family = Family(
        defines["KDIRECT_GENL_NAME"],
        int(defines["KDIRECT_GENL_VERSION"]),
        defines["KDIRECT_GENL_EVENTS"],
        enums,
        {n: a for n, a in attributes.items() if n != "UNSPEC"},
        {},
    )
    tree = _operations(text, family.attributes, commands)
    # In the order of the enum; what the drawing lacks shows as an empty operation.
    family.operations = {c: tree.get(c, Operation()) for c in commands if c != "UNSPEC"}
    return family
