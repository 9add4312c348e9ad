"""Gradients of the problems of ADBench and GradBench, written from their papers' formulae."""
