"""Operations on complex numbers, as pairs of real tensors."""
