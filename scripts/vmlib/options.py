# SPDX-License-Identifier: GPL-2.0-only
"""The command line of scripts/vm."""

import argparse
import os
import re
import shutil
import sys


def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not above 0")
    return value


def pattern(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}")


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="scripts/vm",
        description="Runs a script as root in one or two virtual machines.")
    commands = parser.add_subparsers(dest="command", metavar="run|shell",
                                     required=True)

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--kernel", metavar="NAME", default="stock-6.1",
                        help="a name of 'scripts/kernel list' (%(default)s)")
    common.add_argument("--machines", type=int, choices=(1, 2), default=1,
                        help="how many (%(default)s)")
    common.add_argument("--cpus", type=positive, metavar="N", default=None,
                        help="CPUs of each machine (2; 1 with --icount)")
    common.add_argument("--mem", type=positive, metavar="MiB", default=1024,
                        help="memory of each machine (%(default)s)")
    common.add_argument("--accel", choices=("kvm", "tcg"), default=None,
                        help="default: kvm where it works, else tcg")
    common.add_argument("--icount", action="store_true",
                        help="the clock counts instructions: figures repeat")
    common.add_argument("--with", metavar="PROGRAM", action="append",
                        dest="extra", default=[],
                        help="one more program for --icount, whose root is small")
    common.add_argument("--plugin", metavar="ARGUMENTS", action="append",
                        default=[], help="a plugin for QEMU, as its -plugin; repeatable")
    common.add_argument("--append", metavar="WORDS", default="",
                        help="more for the kernel's command line")
    common.add_argument("--allow", type=pattern, metavar="REGEX", action="append",
                        default=[], help="kernel log lines that are no fault")
    common.add_argument("--all-races", action="store_true",
                        help="with kcsan-*: those outside our modules are faults, too")
    common.add_argument("--verbose", action="store_true",
                        help="tell the steps and their times")

    runner = commands.add_parser("run", parents=[common],
                                 help="run SCRIPT; the exit status is its own")
    runner.add_argument("--timeout", type=positive, metavar="S", default=None,
                        help="seconds of wall time (kvm 120, tcg 300)")
    runner.add_argument("script", metavar="SCRIPT")
    runner.add_argument("args", metavar="ARG", nargs=argparse.REMAINDER)

    shell = commands.add_parser("shell", parents=[common],
                                help="an interactive prompt")
    shell.add_argument("--machine", choices=("a", "b"), default="a",
                       help="whose prompt (%(default)s)")

    opts = parser.parse_args(argv)
    if opts.icount:
        if opts.machines != 1:
            parser.error("--icount works with one machine: two clocks that "
                         "count instructions have no time in common")
        if opts.accel == "kvm":
            parser.error("--icount implies --accel tcg")
        if opts.cpus not in (None, 1):
            parser.error("--icount works with one CPU")
        opts.accel, opts.cpus = "tcg", 1
    opts.cpus = opts.cpus or 2
    if opts.command == "shell":
        opts.timeout = opts.script = None
        opts.args = []
        if opts.machine == "b" and opts.machines == 1:
            parser.error("machine b exists with --machines 2")
        if not sys.stdin.isatty():
            parser.error("shell needs a terminal")
    else:
        if not os.path.isfile(opts.script):
            parser.error(f"no script '{opts.script}'")
        opts.script = os.path.realpath(opts.script)
    if not shutil.which("qemu-system-x86_64"):
        parser.error("no qemu-system-x86_64; 'scripts/deps vm' installs it")
    return opts
