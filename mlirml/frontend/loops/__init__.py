"""The loop front end: Python loops and branches on dynamic values are captured as loops and branches of the program.

A function is rewritten (`rewrite`) so that its statements call the `hooks`, and then traced as any other.
"""

from __future__ import annotations
