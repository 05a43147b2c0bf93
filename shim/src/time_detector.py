"""How long Hermes' own detector of dangerous commands takes for each command.

Usage: python time_detector.py COMMAND... Prints a line for each: nanoseconds per
call, the median of several batches. Run by the benchmarks of the monitor, beside
it. Hermes runs it on every command, and it answers sooner for one it flags.
"""

import statistics
import sys
import time

from tools import approval

BATCHES = 15
CALLS = 30


def nanoseconds(command):
    times = []
    for _ in range(BATCHES):
        started = time.perf_counter_ns()
        for _ in range(CALLS):
            approval.detect_dangerous_command(command)
        times.append((time.perf_counter_ns() - started) / CALLS)
    return statistics.median(times)


for word in sys.argv[1:]:
    print(round(nanoseconds(word)))
