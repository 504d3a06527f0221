"""What markers cost: ``python -m tallymark.bench markers``.

``throughput`` counts how many a service acks in a second, with its clients in other processes.
``recovery`` times how long a service takes to know the markers that a crashed one has left.
"""
