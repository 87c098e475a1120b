"""What tools did to the world, and the processes they left running."""
