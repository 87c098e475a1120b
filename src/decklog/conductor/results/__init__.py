"""Results of runs: landed on a branch, published as a pull request, listed and cleaned up."""
