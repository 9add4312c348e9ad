"""Operations on `ml.Array` outside of compiled functions: gathered, then compiled and run as one program.

`interface.py` gives `Array` NumPy's operators, methods and protocols. Each use makes a `Node` of a `Call`, what is done
(`calls.py`, `templates.py`, `indexing.py`), whose result has its shape and dtype from a trace of the one operation
(`inference.py`), known after the first of its type. Where a value is needed, `evaluation.py` collects what it is
computed from, `pieces.py` splits long chains, and `programs.py` compiles the pieces, or finds them by their structure.
"""
