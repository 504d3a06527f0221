"""What markers cost: ``python -m tallymark.bench markers``.

``model`` sets acks and puts on a virtual clock beside the arithmetic of paced group commit.
``pace_cost`` times acks over puts on the real clock.
``throughput`` counts how many a service acks in a second, with its clients in other processes.
``recovery`` times how long a service takes to know the markers that a crashed one has left.

``late_store`` is storage whose puts take a ``put_time`` that is drawn.
"""
