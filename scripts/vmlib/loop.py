# SPDX-License-Identifier: GPL-2.0-only
"""One thread, one event loop: sockets, processes and timers."""

import heapq
import itertools
import os
import selectors
import time


class Loop:
    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.timers = []
        self.serial = itertools.count()
        self.running = False

    def watch(self, fileobj, callback, events=selectors.EVENT_READ):
        """callback() whenever fileobj is ready; replaces an earlier one."""
        try:
            self.selector.modify(fileobj, events, callback)
        except KeyError:
            self.selector.register(fileobj, events, callback)

    def forget(self, fileobj):
        try:
            self.selector.unregister(fileobj)
        except (KeyError, ValueError):
            pass

    def at(self, when, callback):
        """callback() at the monotonic time when; returns a handle."""
        timer = [when, next(self.serial), callback]
        heapq.heappush(self.timers, timer)
        return timer

    def after(self, seconds, callback):
        return self.at(time.monotonic() + seconds, callback)

    @staticmethod
    def cancel(timer):
        if timer:
            timer[2] = None

    def on_exit(self, pid, callback):
        """callback() when the process ends; the caller reaps it."""
        fd = os.pidfd_open(pid)

        def ended():
            self.forget(fd)
            os.close(fd)
            callback()

        self.watch(fd, ended)

    def stop(self):
        self.running = False

    def run(self):
        self.running = True
        while self.running:
            wait = None
            if self.timers:
                wait = max(0, self.timers[0][0] - time.monotonic())
            for key, _ in self.selector.select(wait):
                # An earlier callback of this round may have forgotten it.
                current = self.selector.get_map().get(key.fd)
                if current and current.data == key.data:
                    key.data()
            now = time.monotonic()
            while self.timers and self.timers[0][0] <= now:
                callback = heapq.heappop(self.timers)[2]
                if callback:
                    callback()
