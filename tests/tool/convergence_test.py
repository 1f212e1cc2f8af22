#!/usr/bin/env python3
"""Usage: convergence_test.py TOOL LOGISTIC: four processes learn as well from 1 % of their gradients as from all, if what is left out is not forgotten."""
import subprocess
import sys
import unittest

TOOL, LOGISTIC = sys.argv[1:3]


def loss(how):
    done = subprocess.run([TOOL, "run", "-n", "4", LOGISTIC, how], capture_output=True, text=True, timeout=250)
    lines = [line.split("loss ")[1] for line in done.stdout.splitlines() if "loss " in line]
    if done.returncode != 0 or len(lines) != 1:
        raise AssertionError(f"{how}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return float(lines[0])


class Convergence(unittest.TestCase):
    def test_feedback_reaches_the_dense_loss_and_forgetting_does_not(self):
        dense = loss("dense")
        self.assertLess(dense, 0.5)  # guessing has 0.69
        self.assertLess(abs(loss("feedback") - dense), 0.01 * dense)
        self.assertGreater(loss("forgetful"), 1.5 * dense)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
