"""What a run is done with and what it is to do: the settings of a commit, and the plan of a person."""
