"""Step: CUDA text -> cubin -> launch. The only folder, with those above it, that touches CUDA or torch."""
