"""Tests of the front end order-entry."""
