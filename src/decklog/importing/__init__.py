"""What every importer and exporter is made of."""
