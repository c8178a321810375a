"""What the commands do beside compiling: check, format, emit, run, judge results, keep the record of GPU runs."""
