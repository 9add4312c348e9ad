"""The tuner: schedules of contractions that are measured, and kept in a file that processes share (docs/tuning.md)."""
