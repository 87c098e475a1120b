"""Building blocks that everything else uses: ids, time, errors, fork safety."""
