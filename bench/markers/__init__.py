"""The question ``markers``: how long does a marker take, what does it cost, and what stands beside it?

    command, run   what it takes, and a whole run
    beside         all sides in turn on one folder, and whole jobs on a store that is far away
    side           who makes markers durable: served_side is ours behind its service, task_side ours without one
                   (direct markers, or an engine in the process that asks), hudi_side Hudi's timeline server
    calling        when a connection asks, and how long it waited; load is what many callers saw
    answer, report, plot

Programs of processes of their own: ``caller`` asks over connections, by a ``talk``; ``task_caller`` asks without one;
``server`` is a driver.

Each a measurement by itself, as ``python -m tallymark.bench.markers.throughput``:

    model          acks and puts on a virtual clock beside the arithmetic of paced group commit
    pace_cost      acks over puts on the real clock, beside what the least program would come to (bare)
    throughput     how many a service acks in a second, with its clients in other processes
    recovery       how long a service takes to know the markers that a crashed one has left

``late_store`` is storage whose puts take a ``put_time`` that is drawn.
"""
