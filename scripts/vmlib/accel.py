# SPDX-License-Identifier: GPL-2.0-only
"""Whether KVM can be used, and the processor options that go with it."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile

from . import initramfs, paths

QEMU = "qemu-system-x86_64"
# A kernel that reaches its init; a broken nested KVM stops long before that.
PROBE_SECONDS = 10
KVM_CPUS = ("host", "host,-arch-capabilities")

INIT = b"""#!/bin/busybox sh
/bin/busybox echo probe: reached init
/bin/busybox poweroff -f
"""


LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """For a child: whatever ends us ends it too."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def firmware(kernel):
    # qboot is the quickest way to a bare kernel image, and knows no other.
    if kernel.image().endswith("vmlinux"):
        return ["-bios", "qboot.rom"]
    return []


def probe(kernel, cpu):
    archive = initramfs.Archive()
    archive.file("/bin/busybox", "bin/busybox")
    archive.directory("dev")
    archive.entry("dev/console", 0o020600, device=(5, 1))
    archive.data("init", INIT, 0o755)
    with tempfile.TemporaryDirectory(prefix="kdirect-vm.") as folder:
        initrd, log = os.path.join(folder, "initrd"), os.path.join(folder, "log")
        initramfs.write(initrd, archive.bytes())
        try:
            subprocess.run(
                [QEMU, "-M", "q35", "-accel", "kvm", "-cpu", cpu, "-smp", "2",
                 "-m", "512", "-nodefaults", "-display", "none", "-no-reboot",
                 "-serial", f"file:{log}", *firmware(kernel),
                 "-kernel", kernel.image(), "-initrd", initrd,
                 "-append", "console=ttyS0 quiet panic=-1"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, timeout=PROBE_SECONDS, check=False,
                preexec_fn=die_with_parent)
            with open(log, "rb") as file:
                return b"probe: reached init" in file.read()
        except (subprocess.TimeoutExpired, OSError):
            return False


def kvm_cpu(kernel):
    """The -cpu that works with KVM here, '' where none does. The answer is
    kept until the host boots again."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return ""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    answer = os.path.join(paths.cache(), f"kvm-{boot}-{os.getuid()}")
    try:
        with open(answer, encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        pass
    works = next((cpu for cpu in KVM_CPUS if probe(kernel, cpu)), "")
    if not works:
        print("vm: there is a /dev/kvm, but a machine does not start with it; "
              "emulating from now on", file=sys.stderr)
    initramfs.write(answer, works.encode())
    return works


def choose(opts, kernel):
    """Sets opts.accel; returns QEMU's arguments for it."""
    if kernel.uml:
        if opts.icount or opts.accel:
            raise initramfs.Error(f"{opts.kernel} runs on the host's processor: "
                                  "no --accel, no --icount")
        opts.accel = "uml"
        return []
    if opts.icount:
        return ["-accel", "tcg,thread=single", "-cpu", "max,-erms,-fsrm",
                "-icount", "shift=0,sleep=off",
                "-rtc", "base=2024-01-01,clock=vm", "-seed", "1"]
    cpu = ""
    if opts.accel != "tcg":
        cpu = kvm_cpu(kernel)
        if opts.accel == "kvm" and not cpu:
            cpu = KVM_CPUS[0]       # asked for: let QEMU say what is wrong
    opts.accel = "kvm" if cpu else "tcg"
    if cpu:
        return ["-accel", "kvm", "-cpu", cpu]
    return ["-accel", "tcg,thread=multi,tb-size=512",
            "-cpu", "max,-erms,-fsrm,-la57"]
