"""Answers to marker requests."""

from enum import Enum


class MarkerAnswer(Enum):
    """Both answers mean that the marker survives a crash. A refusal is an error, never an answer."""

    CREATED = "created"
    EXISTED = "existed"
