# SPDX-License-Identifier: Apache-2.0
"""What scripts/mutants.py is made of: the faults, and the copies of the tree that they are put into."""
