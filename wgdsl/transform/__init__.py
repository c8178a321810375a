"""Steps from program graph to program graph (canonicalise) and on to the streamed graph (stream, mask)."""
