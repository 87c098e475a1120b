"""A run's plan as Markdown: written for people, edited by them, and taken back."""
