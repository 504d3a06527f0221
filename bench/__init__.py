"""The benchmark harness: one module a question, one table, one JSON file and one plot an answer.

    python -m tallymark.bench             the questions
    python -m tallymark.bench backends    what a call through Tallymark costs over the vendor's library alone

    places     the stores            peers     the libraries beside ours    caller    how they are called
    run        a whole run           case      what is measured         verb_side how a side does it
    machine    where it ran          method    how samples are taken        paired    what they say of two sides
    answer     the rows, as JSON     report    ... as tables                plot      ... as an SVG

Nothing in the library imports this room. A figure means something beside the other side's of the same run only.
"""
