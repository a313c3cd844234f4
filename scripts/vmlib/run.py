# SPDX-License-Identifier: GPL-2.0-only
"""A run: starts the machines, streams their output, judges how they ended."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile

from . import accel, closure, console, initramfs, ktap, paths
from .control import Control
from .loop import Loop
from .machine import Machine
from .relay import End, Relay
from .terminal import Terminal
from .uml import Link, UmlMachine

STATUS_FAULT = 70       # the kernel log has a fault, or the machine went off
STATUS_TIMEOUT = 124
STATUS_SETUP = 69       # no machine could be started

# Seconds, by accelerator.
TIMEOUT = {"kvm": 120, "tcg": 300, "uml": 120}
GRACE = {"kvm": 5, "tcg": 15, "uml": 5}
POWER_OFF = {"kvm": 20, "tcg": 60, "uml": 20}
HUNG_TASK = {"kvm": 30, "tcg": 60, "uml": 30}


class Session:
    def __init__(self, opts, folder):
        self.opts, self.dir = opts, folder
        self.loop = Loop()
        self.kernel = initramfs.Kernel(opts.kernel)
        self.accel_args = accel.choose(opts, self.kernel)
        self.base = initramfs.base(self.kernel)
        self.module_index = self.kernel.index()
        self.closure = b""
        if opts.icount:
            self.closure = closure.archive(self.kernel, self.module_index,
                                           opts.script, opts.extra)
        self.hung_task_seconds = HUNG_TASK[opts.accel]
        # The same on each run where figures have to repeat.
        self.nonce = "0" * 16 if opts.icount else secrets.token_hex(8)
        self.control = Control(self)
        names = "ab"[:opts.machines]
        self.relay = None
        if opts.machines == 2:
            self.relay = Relay(self.loop, lambda name: os.path.join(
                folder, f"{name}.net"), Link if self.kernel.uml else End)
        kind = UmlMachine if self.kernel.uml else Machine
        self.machines = {name: kind(self, name) for name in names}
        self.unfinished = {name: b"" for name in names}
        self.status = 0
        self.grace = None
        self.timed_out = self.interrupted = False

    # --- output ---

    def say(self, text):
        sys.stdout.flush()
        print(f"vm: {text}", file=sys.stderr, flush=True)

    def verbose(self, text):
        if self.opts.verbose:
            self.say(text)

    def print(self, machine, data, last=False):
        """A script's output; whole lines where two could mix."""
        if self.opts.machines == 2:
            *lines, rest = (self.unfinished[machine.name] + data).split(b"\n")
            if last and rest:
                lines, rest = [*lines, rest], b""
            self.unfinished[machine.name] = rest
            prefix = f"{machine.name}| ".encode()
            data = b"".join(prefix + line + b"\n" for line in lines)
        if data:
            try:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                self.interrupt(signal.SIGPIPE)

    # --- what happens to the machines ---

    def fail(self, status):
        self.status = self.status or status

    def finished(self, machine):
        """Its script has ended."""
        self.verbose(f"{machine.name}: script ended with {machine.status}")
        self.control.gone(machine)
        if machine.status:
            self.failed(machine, machine.status)

    def failed(self, machine, status):
        self.fail(status)
        others = [m for m in self.machines.values()
                  if m is not machine and m.state == "running"]
        if others and not self.grace:
            self.grace = self.loop.after(
                GRACE[self.opts.accel], lambda: self.stop_others(machine))

    def stop_others(self, first):
        for machine in self.machines.values():
            if machine.state == "running":
                self.say(f"{machine.name}: stopped, since {first.name} failed")
                machine.kill("killed")

    def machine_waits(self):
        """A machine whose script has ended waits to power off."""
        if self.opts.command == "shell":
            over = any(m.state == "finished" for m in self.machines.values())
        else:
            over = not any(m.state in ("running", "restarting")
                           for m in self.machines.values())
        if over and self.control.done:
            self.control.release()
            self.loop.after(POWER_OFF[self.opts.accel], self.still_on)

    def still_on(self):
        for machine in self.machines.values():
            if machine.state in ("running", "finished"):
                self.say(f"{machine.name}: did not power off")
                self.fail(STATUS_FAULT)
                machine.kill("killed")

    def ended(self, machine):
        """Its QEMU has ended, and will not be started again."""
        self.control.gone(machine)
        if machine.state == "off" and machine.status is None and \
           not (self.opts.command == "shell" and machine.name != self.opts.machine):
            self.say(f"{machine.name}: went off before its script ended")
            self.failed(machine, STATUS_FAULT)
        self.verbose(f"{machine.name}: {machine.state}")
        if all(m.state in ("off", "killed") for m in self.machines.values()):
            self.loop.stop()
        else:
            self.machine_waits()

    def timeout(self):
        self.timed_out = True
        self.status = STATUS_TIMEOUT
        self.say(f"timeout after {self.opts.timeout} s")
        # Let the kernels tell what they are stuck in.
        for machine in self.machines.values():
            machine.tell_blocked()
        self.loop.after(2, self.kill_all)

    def kill_all(self):
        for machine in self.machines.values():
            machine.kill("killed")

    def interrupt(self, number, _frame=None):
        self.interrupted = True
        self.status = 128 + number
        self.kill_all()

    # --- the run ---

    def run(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.interrupt)
        terminal = None
        if self.opts.command == "shell":
            machine = self.machines[self.opts.machine]
            terminal = Terminal(self, machine)
        if self.opts.timeout is None:
            self.opts.timeout = TIMEOUT[self.opts.accel]
        if self.opts.command == "run":
            self.loop.after(self.opts.timeout, self.timeout)
        try:
            for machine in self.machines.values():
                machine.start()
            self.loop.run()
        finally:
            for machine in self.machines.values():
                if machine.process and machine.process.poll() is None:
                    machine.stop()
                    machine.process.wait()
            if terminal:
                terminal.restore()
        if not self.interrupted:
            self.judge()
        return self.status

    def judge(self):
        for machine in self.machines.values():
            self.kunit(machine)
            faults = machine.faults()
            if faults:
                self.fail(STATUS_FAULT)
                for line in faults:
                    self.say(f"{machine.name}: kernel log: {line}")
            elif self.timed_out or (
                    self.opts.command == "run" and machine.state == "off" and machine.status is None):
                for line in console.lines(machine.console)[-25:]:
                    self.say(f"{machine.name}: console: {line}")
            self.qemu_errors(machine)
        if self.status:
            self.keep()

    def kunit(self, machine):
        lines = ktap.results(console.lines(machine.console))
        self.print(machine, "".join(f"{line}\n" for line in lines).encode())
        if ktap.failed(lines):
            self.fail(1)

    def qemu_errors(self, machine):
        with open(machine.path("qemu"), encoding="utf-8", errors="replace") as file:
            for line in file:
                self.say(f"{machine.name}: qemu: {line.rstrip()}")

    def keep(self):
        name = "shell"
        if self.opts.script:
            # The arguments tell runs of one script apart, two of which may end at once.
            words = [os.path.splitext(os.path.basename(self.opts.script))[0],
                     *(word for word in self.opts.args if word.isalnum())]
            name = "-".join(words)
        os.makedirs(paths.LOGS, exist_ok=True)
        for machine in self.machines.values():
            log = os.path.join(paths.LOGS, f"{name}.{machine.name}.log")
            shutil.copyfile(machine.console, log)
            self.say(f"{machine.name}: console log: {os.path.relpath(log)}")


def main(opts):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # Unix sockets have short names: not below a TMPDIR of any length.
    with tempfile.TemporaryDirectory(prefix="kdirect-vm.", dir="/tmp") as folder:
        try:
            session = Session(opts, folder)
        except (initramfs.Error, subprocess.CalledProcessError, OSError) as error:
            print(f"vm: {error}", file=sys.stderr)
            return STATUS_SETUP
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        return session.run()
