# SPDX-License-Identifier: GPL-2.0-only
"""The files of an --icount machine, all in memory from the start.

An answer of the shared root comes after a random time, and an idle machine's
clock jumps to its next timer meanwhile: figures would not repeat. So the
programs that measurements need, and what these need, go into the initramfs.
"""

import glob
import os
import shutil
import subprocess

from . import initramfs, paths

PROGRAMS = """
    bash sh env setsid flock mount umount mountpoint dmesg hostname stty kmod
    modprobe insmod rmmod lsmod modinfo ip rdma ping timeout taskset chrt nice
    cat cmp cp cut date dd expr head kill ln ls mkdir mkfifo mktemp mv nproc od
    printf readlink rm sed awk grep seq sha256sum sleep sort stat sync tail tee
    tr true uname uniq wc xargs find
    rping ucmatose udaddy udpong rdma_server rdma_client
    ibv_devinfo ibv_devices ibv_rc_pingpong
    ib_send_lat ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw
    ib_atomic_lat ib_atomic_bw
""".split()

MODULES = """
    virtio_pci virtio_console crc32_generic crc32-pclmul dummy veth
    rdma_rxe siw ib_uverbs rdma_ucm nvme-rdma nvmet-rdma null_blk brd loop
""".split()

ETC = """
    passwd group nsswitch.conf hosts protocols services ld.so.cache
    libibverbs.d/rxe.driver libibverbs.d/siw.driver
""".split()

INDEX = """
    modules.dep modules.dep.bin modules.alias modules.alias.bin modules.order
    modules.symbols modules.symbols.bin modules.softdep modules.builtin
    modules.builtin.bin modules.builtin.alias.bin modules.builtin.modinfo
    modules.devname
""".split()


class Closure:
    def __init__(self):
        self.archive = initramfs.Archive()
        for link in ("sbin", "lib", "lib64"):
            if os.path.islink("/" + link):
                self.archive.link(link, os.readlink("/" + link))

    def add(self, path):
        """A file where programs look for it, past links between directories."""
        folder = os.path.realpath(os.path.dirname(path))
        self.archive.file(path, os.path.join(folder, os.path.basename(path)))

    def programs(self, files):
        """Programs, and the libraries they are linked to."""
        for path in files:
            self.add(path)
        # Many at once: ldd is a slow shell script. It fails for scripts.
        listing = subprocess.run(["ldd", *files], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True,
                                 check=False).stdout
        for line in listing.splitlines():
            words = line.split()
            if line.startswith("\t"):
                for word in words:
                    if word.startswith("/") and os.path.exists(word):
                        self.add(word)

    def tree(self, top):
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    self.archive.file(path)


def archive(kernel, index, script, extra):
    closure = Closure()
    files = []
    for name in [*PROGRAMS, *extra]:
        path = shutil.which(name, path=initramfs.tool_path())
        if path:
            files.append(path)
        elif name in extra:
            raise initramfs.Error(f"no program '{name}' for --with")
    files += glob.glob(os.path.join(paths.BUILD, "bin", "*"))
    libraries = glob.glob("/usr/lib/*/libibverbs/lib*.so")
    libraries = [p for p in libraries if "librxe-" in p or "libsiw-" in p]
    libraries += glob.glob("/lib/*-linux-gnu/libgcc_s.so.1")
    closure.programs([p for p in files + libraries if os.path.isfile(p)])
    closure.archive.link("bin/bash", "/usr/bin/bash")

    for name in ETC:
        path = os.path.join("/etc", name)
        if os.path.isfile(path):
            closure.archive.file(path)

    tree = os.path.join("usr/lib/modules", kernel.release)
    for path in kernel.module_files(MODULES):
        closure.archive.file(path, os.path.join(
            tree, os.path.relpath(path, kernel.modules)))
    for path in kernel.own_modules():
        closure.archive.file(path)
        closure.archive.file(path, os.path.join(
            tree, "extra", os.path.basename(path)))
    for name in INDEX:
        for base in filter(None, (index, kernel.modules)):
            path = os.path.join(base, name)
            if os.path.exists(path):
                closure.archive.file(path, os.path.join(tree, name))
                break

    for folder in (paths.GUEST, os.path.join(paths.TOP, "tests/vm")):
        closure.tree(folder)
    if script:
        closure.archive.file(script)
    return closure.archive.bytes()
