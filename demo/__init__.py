"""The demo: a real PySpark job survives a killed task and a killed driver without a stray file.

``python -m demo [folder]`` plays the five functions of ``steps``, in their order. Its claims are checked without the
library: in the folder (``storage``), among the processes of the system (``kill``) and by other readers (``readers``).
"""
