"""Plans, runs, analyses and presents what the workers measure. lab/README.md is the map."""
