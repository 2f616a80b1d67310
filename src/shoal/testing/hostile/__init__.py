"""The parts of the hostile site, by the way in which they misbehave. Use `shoal.testing.hostile_site`."""
