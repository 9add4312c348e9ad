"""Replay: what every stage makes of some three hundred programs, kept, and compared with what it makes later.

    python -m tests.replay record before.zip     # on the tree before a change
    python -m tests.replay compare before.zip    # on the tree after it

A change that only moves or renames code changes no byte of the IR or of the object code. For any other change the
comparison says which programs it changed, at which stage first, and how.
"""
