"""How long Hermes' own detector of dangerous commands takes for one command.

Usage: python time_detector.py COMMAND. Prints nanoseconds of CPU per call, the
best of several batches. Run by the benchmark of the monitor, beside it.
"""

import sys
import time

from tools import approval

command = sys.argv[1]
best = None
for _ in range(7):
    started = time.process_time_ns()
    for _ in range(50):
        approval.detect_dangerous_command(command)
    spent = (time.process_time_ns() - started) / 50
    best = spent if best is None else min(best, spent)
print(round(best))
