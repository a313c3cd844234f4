# SPDX-License-Identifier: GPL-2.0-only
"""KUnit's results in a kernel log, as lines that a test runner counts.

A module with suites runs them when it is loaded and prints KTAP:

    KTAP version 1
    1..2                                the plan: suites
        KTAP version 1
        # Subtest: SUITE
        1..3                            cases
            KTAP version 1
            # Subtest: CASE             with parameters
            ok 1 PARAMETER
        ok 1 CASE
        # CASE: EXPECTATION FAILED at FILE:LINE
        not ok 2 CASE
        ok 3 CASE # SKIP REASON
    not ok 1 SUITE

Loading it succeeds all the same, and KUnit itself prints no plan for a module: the
module has to (tests/kunit/main.c). What such a log lacks is a failure, too.
"""

import re

STAMP = re.compile(r"^((?:<\d+>)?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?)?(.*)$")
NOTE = re.compile(r"^ {4,}# ")
FAILED = re.compile(r"^ +# .*: (EXPECTATION|ASSERTION) FAILED at ")
VERSION = re.compile(r"^( *)KTAP version \d+$")
PLAN = re.compile(r"^( *)1\.\.(\d+)$")
SUBTEST = re.compile(r"^( *)# Subtest: (.+)$")
RESULT = re.compile(r"^( *)(not )?ok (\d+)(?: -)? (.*?)(?: # SKIP ?(.*))?$")
STATISTICS = re.compile(r"^( *)# (.+): pass:\d+ fail:\d+ skip:\d+ total:(\d+)$")
SUITE, CASE, PARAMETER = 0, 4, 8
LONGEST = 60            # lines of what a case says


class Suite:
    def __init__(self, name):
        self.name, self.plan = name, None
        self.lines, self.cases, self.failed, self.skipped = [], 0, 0, 0
        self.begin_case()

    def begin_case(self):
        self.text, self.parameters, self.bad_parameters, self.total = [], 0, 0, None
        self.why_skipped = ""

    def result(self, ok, what, text=(), skipped=None):
        """One line, and what belongs to it."""
        directive = "" if skipped is None else f" # SKIP {skipped}".rstrip()
        self.lines.append(f"{'ok' if ok else 'not ok'} - {self.name}: {what}{directive}")
        self.lines += [f"# {line}" for line in text[:LONGEST]]
        if len(text) > LONGEST:
            self.lines.append(f"# … {len(text) - LONGEST} more lines")
        self.failed += not ok

    def case(self, bad, name, skipped):
        self.cases += 1
        if self.parameters:
            count = f"{self.parameters} parameters"
            if self.bad_parameters:
                count += f", {self.bad_parameters} failed"
            name += f" ({count})"
            if self.total not in (None, self.parameters):
                bad = True
                self.text.append(f"the log has {self.parameters} results of {self.total}")
        # A parameter that failed fails its case: believed of each by itself.
        bad = bad or self.bad_parameters != 0
        if skipped is not None and not bad:
            self.skipped += 1
            skipped = skipped or self.why_skipped
        self.result(not bad, name, self.text if bad else (), None if bad else skipped)
        self.begin_case()

    def end(self, bad, skipped):
        if self.plan is None:
            self.result(False, "has a plan", self.text)
        elif self.cases != self.plan:
            self.result(False, f"ran {self.cases} of {self.plan} cases", self.text)
        elif not self.cases:
            self.result(False, "has cases")
        elif bad and not self.failed:
            self.result(False, "succeeds as a whole", self.text)
        elif skipped is not None and self.skipped != self.cases:
            self.result(False, "is skipped, but not its cases")


class Reader:
    """Feed it lines; then results() gives the text, [] if there was no KTAP."""

    def __init__(self):
        self.plan, self.seen = None, False
        self.suites, self.suite, self.loose = [], None, []
        self.telling = None     # the time stamp of a failure's text

    def line(self, stamp, line):
        if VERSION.match(line):
            if not VERSION.match(line).group(1):
                self.close("the next document began")
                # one document for each module that was loaded
                self.finish_document()
            self.seen = True
            return
        if not self.seen:
            return
        if match := SUBTEST.match(line):
            if len(match.group(1)) == CASE:
                self.close("the next suite began")
                self.suite = Suite(match.group(2))
                self.suites.append(self.suite)
            return
        if match := PLAN.match(line):
            self.planned(len(match.group(1)), int(match.group(2)))
        elif match := RESULT.match(line):
            self.result(len(match.group(1)), *match.group(2, 4, 5))
        elif self.suite and self.telling is not None and stamp == self.telling:
            # its lines are one message, and need not be indented
            self.suite.text.append(line)
        elif self.suite and NOTE.match(line):
            self.telling = stamp if FAILED.match(line) else None
            # what KUnit says; its statistics are told in another way
            match = STATISTICS.match(line)
            if not match:
                self.suite.text.append(line[CASE:])
            elif len(match.group(1)) == CASE:
                self.suite.total = int(match.group(3))

    def planned(self, indent, count):
        if indent == SUITE and self.plan is None:
            self.plan = count
        elif indent == CASE and self.suite:
            self.suite.plan = count

    def result(self, indent, bad, name, skipped):
        if indent == PARAMETER and self.suite:
            self.suite.parameters += 1
            self.suite.bad_parameters += bad is not None
            self.suite.why_skipped = skipped or self.suite.why_skipped
            if bad or skipped is not None:
                self.suite.text.append(f"{'not ok' if bad else 'skipped'}: {name}")
        elif indent == CASE and self.suite:
            self.suite.case(bad is not None, name, skipped)
        elif indent == SUITE:
            if not self.suite or self.suite.name != name:
                # it could not be prepared, and says nothing but this
                self.close("another one ended")
                self.suite = Suite(name)
                self.suites.append(self.suite)
            self.suite.end(bad is not None, skipped)
            self.suite = None

    def close(self, why):
        if self.suite:
            self.suite.result(False, f"did not end: {why}, after {self.suite.cases} of "
                              f"{self.suite.plan or 'an unknown number of'} cases",
                              self.suite.text)
            self.suite = None

    def finish_document(self):
        if not self.seen:
            return
        if self.plan == 0 and not self.suites:
            # a kernel with KUnit and no suites of its own says so when it boots
            self.plan, self.seen = None, False
            return
        whole = Suite("kunit")
        if self.plan is None:
            whole.result(False, "the plan of all suites")
        elif len(self.suites) != self.plan:
            whole.result(False, f"{len(self.suites)} of {self.plan} suites ran")
        suites = [*self.suites, whole]
        for suite in suites:
            self.loose += suite.lines
        cases = sum(suite.cases for suite in suites)
        self.loose.append(
            f"# kunit: {len(self.suites)} suites, {cases} cases, "
            f"{sum(suite.failed for suite in suites)} failed, "
            f"{sum(suite.skipped for suite in suites)} skipped")
        self.plan, self.seen, self.suites, self.suite = None, False, [], None

    def results(self):
        self.close("the log did")
        self.finish_document()
        return self.loose


def results(log):
    """Lines for the output of a run, from those of a console log."""
    reader = Reader()
    for line in log:
        reader.line(*STAMP.match(line.rstrip()).groups(""))
    return reader.results()


def failed(lines):
    return any(line.startswith("not ok") for line in lines)
