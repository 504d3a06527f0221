"""The driver's service, which tasks ask for markers, and for what partitions hold, over one authenticated connection a
process.

    client -> line -> call ==> frame, auth, wire ==> connection -> server -> create(instant, paths, io)
                                                                          -> look_up(position, hash)(partition)

``JobClient`` and ``client_for`` block and are for tasks, whose threads talk themselves while they wait; ``JobServer``
runs on the driver's event loop. How markers are made durable, and what a view is, is not known here: the server is
given a callable for each. What travels is decided by ``wire``, ``blocks``, ``frame`` and ``auth`` without I/O;
``conversation`` decides, without I/O, what a client sends again.
"""
