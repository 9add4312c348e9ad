"""Operations that move elements or look at them in another shape: views, joins, rearrangements."""
