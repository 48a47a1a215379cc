"""Composes, encodes and compresses messages before they are sent."""
