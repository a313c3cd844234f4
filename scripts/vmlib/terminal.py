# SPDX-License-Identifier: GPL-2.0-only
"""The prompt of `scripts/vm shell`: our terminal, joined to a machine's."""

import os
import sys
import termios
import tty

from .machine import Port

LEAVE = b"\x1d"      # Ctrl-]


class Terminal:
    def __init__(self, session, machine):
        self.session, self.machine = session, machine
        self.fd = sys.stdin.fileno()
        self.before = termios.tcgetattr(self.fd)
        session.say("Ctrl-] ends the machine")
        machine.tty = Port(session.loop, machine.path("tty"), self.show)
        tty.setraw(self.fd)
        session.loop.watch(self.fd, self.typed)

    def typed(self):
        data = os.read(self.fd, 4096)
        if not data or LEAVE in data:
            self.session.loop.forget(self.fd)
            self.session.kill_all()
            return
        self.machine.tty.send(data)

    @staticmethod
    def show(data):
        while data:
            data = data[os.write(sys.stdout.fileno(), data):]

    def restore(self):
        termios.tcsetattr(self.fd, termios.TCSADRAIN, self.before)
