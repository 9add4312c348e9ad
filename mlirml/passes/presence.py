"""Operations by the beginnings of their names, for `@register(when=...)`: a pass is skipped where a module has none."""

ANY_LOOP = ("affine.", "scf.for", "scf.parallel", "scf.while")
ANY_REQUEST = ("mlirml.",)
"""Requests for derivatives and batches become any operations: while a module has some, only raising is skipped."""
ANY_CONTRACTION = ("linalg.batch_", "linalg.contract", "linalg.dot", "linalg.mat", "linalg.vecmat")
ANY_WINDOW = ("linalg.conv", "linalg.depthwise", "linalg.pooling", "linalg.window")
"""Named operations on windows, and `linalg.window`, which means any generic one (`driver.compilation.present`)."""
