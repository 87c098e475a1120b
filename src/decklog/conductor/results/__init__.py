"""What has come of runs: brought into a branch, listed from git alone, cleaned up."""
