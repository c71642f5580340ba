"""Loads made by several machines at once, held together by Ray."""
