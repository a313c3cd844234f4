# SPDX-License-Identifier: GPL-2.0-only
"""Finds the faults in a machine's kernel log."""

import re

FAULT = re.compile("|".join((
    r"WARNING:", r"BUG:", r"BUG \S+ \(", r"kernel BUG at", r"\bOops\b",
    r"general protection", r"double fault", r"Kernel panic",
    r"unable to handle", r"Unable to handle",
    r"KASAN", r"KCSAN", r"KFENCE:", r"UBSAN", r"ODEBUG",
    r"possible (recursive|circular|irq lock)", r"inconsistent lock state",
    r"DEBUG_LOCKS_WARN", r"lockdep.*(bad|fail|too low|turning off)",
    r"suspicious RCU", r"scheduling while atomic", r"sleeping function called",
    r"INFO: task .* blocked", r"INFO: rcu", r"rcu: INFO", r"detected stalls",
    r"soft lockup", r"hard LOCKUP", r"[Hh]ard lockup", r"workqueue lockup",
    r"kmemleak: .*new suspected", r"unreferenced object",
    r"refcount_t:", r"list_(add|del) corruption", r"Bad page", r"bad page",
    r"Objects remaining", r"still has objects", r"unregister_netdevice: waiting",
    r"Call Trace:", r"cut here",
)))

# Lines that look like faults and tell of the processor or the configuration.
HARMLESS = re.compile("|".join((
    r"Spectre V2 : WARNING: Unprivileged eBPF",
    r"kasan: KernelAddressSanitizer initialized",
    r"Lock dependency validator",
)))

END = re.compile(r"---\[ end (trace|Kernel panic)")
BEFORE, AFTER, LONGEST = 3, 45, 200

# KCSAN's reports: each access is followed by its stack, the innermost frame first.
RACE = re.compile(r"BUG: KCSAN:")
RACE_END = re.compile(r"={30,}")
ACCESS = re.compile(r"\b(read|write|assert)\b.* of \d+ bytes by ")
FRAME = re.compile(r"\] +(\w[\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[(\w+)\])?")
# What acts on its caller's memory.
HELPER = re.compile(r"_*(mem(cpy|move|set|cmp)|list_(add|del)|llist_|copy_(to|from)|"
                    r"kcsan_|tsan_|refcount_|k?v?free|kmem_cache_free)")
OWN_MODULE = re.compile(r"kdirect")

# CONFIG_DEBUG_VM tells with a stack when memory under userfaultfd is to be pinned for
# long, which the kernel refuses (EFAULT): whoever asked for it is at fault, a program.
REFUSED_PIN = re.compile(r"FAULT_FLAG_ALLOW_RETRY missing")
STACK_END = re.compile(r"</TASK>")


def lines(path):
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    text = re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|c)", "", text).replace("\r", "")
    return text.splitlines()


def is_ours(race):
    """Whether one of the accesses of a race was made by a module of ours: what the
    kernel does on our behalf, or rxe, races with itself often."""
    inside = False
    for line in race:
        if ACCESS.search(line):
            inside = True
            continue
        frame = FRAME.search(line)
        if not inside or not frame or HELPER.match(frame.group(1)):
            continue
        if OWN_MODULE.match(frame.group(2) or ""):
            return True
        inside = False
    return False


def without_foreign_races(log):
    kept, start = [], None
    for number, line in enumerate(log):
        if start is None:
            if RACE.search(line):
                start = number
            else:
                kept.append(line)
        elif RACE_END.search(line):
            if is_ours(log[start:number]):
                kept += log[start:number + 1]
            start = None
    if start is not None:       # a report that was cut off: nobody knows whose it is
        kept += log[start:]
    return kept


def without_refused_pins(log):
    kept, report = [], []
    for line in log:
        if report or REFUSED_PIN.search(line):
            report.append(line)
            if STACK_END.search(line):
                report = []
        else:
            kept.append(line)
    return kept + report        # one that was cut off may hide another


def faults(log, allowed=(), all_races=False):
    """The log's faults with the lines around them; [] for a clean log."""
    log = without_refused_pins(log)
    if not all_races:
        log = without_foreign_races(log)
    chosen = set()
    for number, line in enumerate(log):
        if not FAULT.search(line) or HARMLESS.search(line):
            continue
        if any(regex.search(line) for regex in allowed):
            continue
        for near in range(max(0, number - BEFORE),
                          min(len(log), number + AFTER)):
            chosen.add(near)
            if near > number and END.search(log[near]):
                break
    result, last = [], None
    for number in sorted(chosen):
        if last is not None and number != last + 1:
            result.append("…")
        result.append(log[number])
        last = number
    if len(result) > LONGEST:
        left = len(result) - LONGEST
        result[LONGEST:] = [f"… {left} more lines"]
    return result
