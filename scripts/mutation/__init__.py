# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/mutants.py: the faults, and the copies of the tree that they are put into."""
