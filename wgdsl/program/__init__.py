"""Forms 2 and 3: the typed dataflow graph of a program, and the streamed graph."""
