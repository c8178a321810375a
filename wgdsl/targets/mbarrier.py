"""mbarriers (PTX ISA: "Parallel Synchronization and Communication Instructions: mbarrier")."""

MBARRIER_BYTES = 8  # of shared memory, and their alignment
