"""Slices whose lengths are known only when the program runs, and functions of them, as loops."""
