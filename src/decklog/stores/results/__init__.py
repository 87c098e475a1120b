"""Types of verb results that are not records: dictionaries of JSON values."""
