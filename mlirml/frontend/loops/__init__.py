"""The loop front end: Python's loops and branches on numbers of the program become loops and branches of it.

A function is rewritten (`rewrite`), so that its statements ask the `hooks` how to go on, and then traced as any other.
"""

from __future__ import annotations
