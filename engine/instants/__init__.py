"""The life of an instant: reserved, registered, marked, committed or rolled back, projected and finished."""
