"""What every form and step may use: sources and spans, dtypes, names."""
