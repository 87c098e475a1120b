"""Trust: one manager, capability tiers, and the signatures under every step up."""
