"""Describes the data that trials need on their servers, one module for each kind of data, and makes, finds and resets
them."""
