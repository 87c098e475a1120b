from decklog.cli import main

main()
