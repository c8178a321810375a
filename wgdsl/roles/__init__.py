"""Form 4: the role program. Per kernel and role the steps over placed tiles, every event explicit."""
